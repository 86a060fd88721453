"""What the command line prints: a table for people, one JSON object for programs."""

import json
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.table import Table

from service.errors import Refusal


def show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an answer. A list of objects in it becomes a table of its own."""
    if as_json:
        click.echo(json.dumps(answer))
        return
    console = Console(soft_wrap=True, highlight=False)
    facts = Table(show_header=False, box=None, pad_edge=False)
    tables: list[tuple[str, list[dict[str, Any]]]] = []
    for name, value in answer.items():
        if isinstance(value, list) and all(isinstance(row, dict) for row in value):
            tables.append((name, value))
        else:
            facts.add_row(f"[bold]{name}[/]", _text(value))
    if facts.row_count:
        console.print(facts)
    for name, rows in tables:
        console.print(_table(name, rows) if rows else f"[bold]{name}[/] none")


def refuse(refusal: Refusal) -> NoReturn:
    """Print the error envelope and end with 1."""
    click.echo(json.dumps(refusal.envelope()))
    sys.exit(1)


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=name, title_justify="left", box=None, pad_edge=False)
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    return table


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
