"""The reference of the command line and of the settings matches the code."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import click
import pytest

import service.cli
from service.app.settings import SETTINGS
from service.cli import cli
from service.cli.generated_documents import commands, documents
from service.cli.lazy import LazyGroup

WITHOUT = {
    "claim-ledger audit check": {"data_dir", "person"},
    "claim-ledger audit keygen": {"data_dir", "person"},
    "claim-ledger audit verify": {"person"},
    "claim-ledger keys-at-rest keygen": {"data_dir", "person"},
}
"""Commands that need no installation, or nobody of the team."""
PROGRAMS = {"service.cli.dev.store"}
"""Modules whose command is a program of its own, which `dev` starts."""


@pytest.mark.parametrize("path", documents(), ids=str)
def test_generated_documents_are_up_to_date(path):
    """Running `just generate` would change nothing."""
    assert path.read_text() == documents()[path], f"{path} is generated: run `just generate`"


def test_every_command_is_in_a_group():
    """One that none names does not exist for whoever runs the program."""
    known = {id(command) for _, command in commands(cli)}
    lacking = [
        f"`{command.name}` of {module.name}: name it in _GROUPS, in service/cli/__init__.py"
        for module in pkgutil.walk_packages(service.cli.__path__, "service.cli.")
        if module.name not in PROGRAMS
        for command in vars(import_module(module.name)).values()
        if isinstance(command, click.Command) and not isinstance(command, click.Group)
        if id(command) not in known
    ]
    assert not lacking


@pytest.mark.parametrize(("name", "command"), list(commands(cli)), ids=str)
def test_every_command_is_documented_once(name, command):
    """Each command has one row with a summary and each of its own options."""
    lines = Path("docs/cli.md").read_text().splitlines()
    rows = [line for line in lines if re.match(rf"\| `{name}[ `]", line)]
    options = [
        option
        for one in command.params
        if one.name not in {"as_json", "data_dir", "person"}
        for option in (*one.opts, *one.secondary_opts)
        if option.startswith("--")
    ]
    assert len(rows) == 1
    assert command.help
    assert [option for option in options if option not in rows[0]] == []


@pytest.mark.parametrize(("name", "command"), list(commands(cli)), ids=str)
def test_every_option_has_help_and_ids_are_called_so(name, command):
    """What an option takes is said, and an id by the same word everywhere."""
    context = click.Context(command)
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert [one.opts for one in options if not one.help] == []
    ids = [one for one in options if set(one.opts) & {"--claim", "--entity", "--partner"}]
    assert {one.make_metavar(context) for one in ids} <= {"ID"}, name


def test_every_team_command_takes_json_and_data_dir_and_names_somebody():
    """The document's statement about all team commands is true."""
    lacking = [
        name
        for name, command in commands(cli)
        if name.count(" ") > 1
        and {"as_json", "data_dir", "person"}
        - {one.name for one in command.params}
        - WITHOUT.get(name, set())
    ]
    assert lacking == []


def test_documents_name_every_command_without_a_common_option():
    """As README, runbook and reference have it, each command by its name."""
    lacking = {
        option: {
            name.removeprefix("claim-ledger ")
            for name, command in commands(cli)
            if (option == "as_json" or name.count(" ") > 1)
            and option not in {one.name for one in command.params}
        }
        for option in ("as_json", "data_dir", "person")
    }
    texts = {
        path: " ".join(Path(path).read_text().split())
        for path in ("README.md", "deploy/runbook.md", "docs/cli.md")
    }
    names = "((?:`[a-z -]+`(?:, | and )?)+)"
    every = f"Every command accepts (?:it|`--json`), except {names}"
    claims = [(path, every, "as_json") for path in texts]
    claims.append(("docs/cli.md", f"{names} name nobody", "person"))
    claims.append(("docs/cli.md", f"{names} need no installation", "data_dir"))
    for path, claim, option in claims:
        (named,) = re.findall(claim, texts[path])
        assert set(re.findall(r"`([^`]+)`", named)) == lacking[option], (path, named)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_every_setting_is_documented_once(setting):
    """Each setting has one row."""
    text = Path("docs/settings.md").read_text()
    assert text.count(f"| `{setting.variable}` |") == 1


def test_a_list_tells_of_each_command_what_its_help_does():
    """A list reads the sources and imports no command, which would take a second."""
    told = {}
    for group in (one for one in cli.commands.values() if isinstance(one, LazyGroup)):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            fresh = LazyGroup(name=group.name, modules={group.module_of(name): name})
            told[group.name, name] = fresh.summary(context, name), fresh.commands
            assert told[group.name, name] == (command.get_short_help_str(1_000), {})
    assert len(told) > 40
