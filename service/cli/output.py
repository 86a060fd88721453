"""What the command line prints: aligned text for people, one JSON object for programs."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeGuard

import click

from service.cli.spool import Spool
from service.core.clock import timestamp
from service.core.errors import Refusal
from service.ledger.database import Row

HASH = re.compile(r"[0-9a-f]{32,}")
HASH_SHOWN = 12
ROWS_SHOWN_MAX = 1000
"""Of a spooled table, to a person; a program gets them all."""


class Blocks(list[dict[str, Any]]):
    """Objects that are too wide for a table: to a person, each is shown line by line."""


def show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an answer. A list of objects in it becomes a table of its own; spools are closed."""
    (_print_object if as_json else _print_text)(answer)
    for value in answer.values():
        if isinstance(value, Spool):
            value.close()


def columns_of(row: Row, names: Iterable[str], moments: Iterable[str]) -> dict[str, Any]:
    """Return some columns of a row, its moments as text, or None where there is none."""
    texts = {name: timestamp(row[name]) if row[name] else None for name in moments}
    return {name: row[name] for name in names} | texts


def refuse(refusal: Refusal) -> NoReturn:
    """Print the error envelope and end with 1."""
    click.echo(json.dumps(refusal.envelope()))
    sys.exit(1)


def _print_object(answer: Mapping[str, Any]) -> None:
    """Print one line, a spooled table in it row by row."""
    write = sys.stdout.write
    for nr, (name, value) in enumerate(answer.items()):
        write(f"{', ' if nr else '{'}{json.dumps(name)}: ")
        if not isinstance(value, Spool):
            write(json.dumps(value))
            continue
        write("[")
        for row_nr, line in enumerate(value.lines()):
            write(f", {line}" if row_nr else line)
        write("]")
    click.echo("}" if answer else "{}")


def _print_text(answer: Mapping[str, Any]) -> None:
    spools = {name: value for name, value in answer.items() if isinstance(value, Spool)}
    answer = {**answer, **{name: spool.first(ROWS_SHOWN_MAX) for name, spool in spools.items()}}
    facts = {name: value for name, value in answer.items() if not _is_table(value)}
    lines = _aligned([[name, _text(value)] for name, value in facts.items()])
    for name, value in answer.items():
        if isinstance(value, Blocks):
            lines += [line for block in value for line in ("", *_block(block))]
        elif _is_table(value):
            lines += ["", name, *_table(value)]
        if name in spools and len(spools[name]) > ROWS_SHOWN_MAX:
            lines.append(f"  and {len(spools[name]) - ROWS_SHOWN_MAX} more: `--json` has them all")
    click.echo("\n".join(lines).lstrip("\n"))


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


def _block(facts: Mapping[str, Any]) -> list[str]:
    """Return one fact a line, those within a fact too; long hashes are shortened."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            flat[name] = value
    return _aligned([[name, _shortened(_text(value))] for name, value in flat.items()])


def _shortened(text: str) -> str:
    return f"{text[:HASH_SHOWN]}…" if HASH.fullmatch(text) else text


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return a value on one line. What a partner sent cannot steer the reader's terminal."""
    if value is None:
        return "-"
    if isinstance(value, str) and value.isprintable():
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
