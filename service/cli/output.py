"""What the command line prints: aligned text for people, one JSON object for programs."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeGuard

import click

from service.errors import Refusal


def show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an answer. A list of objects in it becomes a table of its own."""
    if as_json:
        click.echo(json.dumps(answer))
        return
    facts = {name: value for name, value in answer.items() if not _is_table(value)}
    lines = _aligned([[name, _text(value)] for name, value in facts.items()])
    for name, value in answer.items():
        if _is_table(value):
            lines += ["", name, *_table(value)]
    click.echo("\n".join(lines).lstrip("\n"))


def refuse(refusal: Refusal) -> NoReturn:
    """Print the error envelope and end with 1."""
    click.echo(json.dumps(refusal.envelope()))
    sys.exit(1)


def _is_table(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["  none"]
    heads = list(rows[0])
    return [
        f"  {line}"
        for line in _aligned([heads, *([_text(row.get(h)) for h in heads] for row in rows)])
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Answer a value on one line. What a partner sent cannot steer the reader's terminal."""
    if value is None:
        return "-"
    if isinstance(value, str) and value.isprintable():
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
