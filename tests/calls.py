"""Calls of the program that documents show, held to click's parser."""

import re
import shlex

import click

from service.cli import cli

_BLOCK = re.compile(r"^```\w*\n(.*?)^```|^ {4}(.*?\n)", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"^(?:.* (?:--|&&) )?\s*(?:uv run )?(claim-ledger [a-z].*)")
_CONTINUED = "\\\n"


def calls(text: str) -> list[str]:
    """Return the calls of a document's blocks, fenced and indented, also what `kubectl exec` runs.

    Without their comments, the brackets of what may be left out, and a shell's variables.
    """
    lines = (
        line
        for fenced, indented in _BLOCK.findall(text.replace(_CONTINUED, " "))
        for line in (fenced or indented).splitlines()
    )
    found = [call[1] for line in lines if (call := _CALL.match(line))]
    return [re.sub(r"\s#.*|\s\$\w+|[][]", "", one).rstrip() for one in found]


def command_of(line: str) -> tuple[click.Command, list[str]]:
    """Return the command that a line calls, and its arguments."""
    command: click.Command = cli
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0)) if words else None
        assert found is not None, line
        command = found
    return command, words


def hold(line: str, *, bare: bool = False) -> None:
    """Hold that groups, commands, options, choices and arguments of a call match the program's.

    `bare`: what it needs may be left out.
    """
    command, words = command_of(line)
    given, left, _ = command.make_parser(click.Context(command)).parse_args(words)
    assert left == [], line
    for parameter in command.params:
        value = given.get(parameter.name or "")
        assert bare or not parameter.required or isinstance(value, str | list), line
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            assert value in parameter.type.choices, line
