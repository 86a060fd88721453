"""What the command line prints: aligned text for people, one JSON object for programs.

Answers may hold moments and UUIDs; they are printed as the API writes them.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard
from uuid import UUID

import click
import msgspec

from service.cli.verdict import Told
from service.core.clock import timestamp
from service.core.errors import Refusal
from service.core.invisible_characters import visible

if TYPE_CHECKING:
    from service.ledger.database import Row

HASH = re.compile(r"[0-9a-f]{32,}")
HASH_SHOWN = 12
_BETWEEN: Final = b", "
_PART_BYTES: Final = 1 << 20
ROWS_SHOWN_MAX = 1000
"""Rows of a spooled table that are shown to a person; a program gets them all."""


class Spool:
    """Rows of an answer that may be too many for memory, kept in a temporary file.

    Raises ClickException where there is no place for them, and never OSError, which would be taken
    for one of the database's where its rows are added.
    """

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `show` closes it
        except OSError as error:
            raise _no_place(error) from error
        self._count = 0
        self._shown_bytes = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Append an object."""
        item = _BETWEEN + _line(row)
        try:
            self._file.write(item)
        except OSError as error:
            raise _no_place(error) from error
        if self._count < ROWS_SHOWN_MAX:
            self._shown_bytes += len(item)
        self._count += 1

    def flush(self) -> None:
        """Write what has been added, so that nothing can fail when it is read."""
        try:
            self._file.flush()
        except OSError as error:
            raise _no_place(error) from error

    def __len__(self) -> int:
        return self._count

    def parts(self) -> Iterator[str]:
        """Yield the objects as JSON, one after the other, in parts of any size."""
        self._file.seek(len(_BETWEEN))
        while part := self._file.read(_PART_BYTES):
            yield part.decode("ascii")

    def first(self) -> list[dict[str, Any]]:
        """Return the objects that a person is shown."""
        self._file.seek(0)
        return json.loads(b"[%b]" % self._file.read(self._shown_bytes)[len(_BETWEEN) :])

    def close(self) -> None:
        """Close and remove the file."""
        with suppress(OSError):  # what it had no place for, of which was told
            self._file.close()


def _no_place(error: OSError) -> click.ClickException:
    return click.ClickException(
        "there is no place for the answer's rows in the directory of temporary files, which "
        f"TMPDIR names: {error.strerror or error}"
    )


class Blocks(list[dict[str, Any]]):
    """Objects that are too wide for a table: each is shown to a person line by line."""


def show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an answer, with a table for each list of objects in it; close its spools."""
    spools = [value for value in answer.values() if isinstance(value, Spool)]
    for spool in spools:  # all of them, before the first word
        spool.flush()
    if isinstance(answer, Told) and answer.verdict and not as_json:
        click.echo(f"{_text(answer.verdict)}\n")
    (_print_object if as_json else _print_text)(answer if as_json else _labelled(answer))
    for spool in spools:
        spool.close()


def print_answer(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an answer; exit with the code of its verdict, unless that is 0."""
    show(answer, as_json=as_json)
    if isinstance(answer, Told) and answer.exit_code:
        sys.exit(answer.exit_code)


def _labelled(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer with the names of its fields as people read them, in its tables, too."""
    if not isinstance(answer, Told) or not answer.labels:
        return answer

    def named(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {answer.labels.get(name, name): value for name, value in fields.items()}

    return {
        name: [named(row) for row in value] if _is_table(value) else value
        for name, value in named(answer).items()
    }


def columns_of(row: "Row | Mapping[str, Any]", *names: str) -> dict[str, Any]:
    """Return some columns of a row."""
    return {name: row[name] for name in names}


def refuse(refusal: Refusal, *, as_json: bool) -> NoReturn:
    """Print why, for a program as the error envelope on stdout, and exit with 1."""
    if as_json:
        click.echo(json.dumps(refusal.envelope()))
    else:
        click.echo("\n".join(_prose(refusal)), err=True)
    sys.exit(1)


def _prose(refusal: Refusal) -> Iterator[str]:
    yield f"Refused: {_text(refusal.message)} ({refusal.code})"
    for name, messages in (refusal.field_errors or {}).items():
        yield from (f"  {_text(name)}: {_text(message)}" for message in messages)
    yield from (f"  {_text(message)}" for message in refusal.form_errors)


def _print_object(answer: Mapping[str, Any]) -> None:
    """Print one line, writing spooled tables row by row."""
    write = sys.stdout.write
    for nr, (name, value) in enumerate(answer.items()):
        write(f"{', ' if nr else '{'}{json.dumps(name)}: ")
        if not isinstance(value, Spool):
            write(_json(value))
            continue
        write("[")
        for part in value.parts():
            write(part)
        write("]")
    click.echo("}" if answer else "{}")


def _print_text(answer: Mapping[str, Any]) -> None:
    spools = {name: value for name, value in answer.items() if isinstance(value, Spool)}
    answer = {**answer, **{name: spool.first() for name, spool in spools.items()}}
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
    """Return a line for each fact, nested ones included; long hashes are shortened."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": fact for inner, fact in value.items()}
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


def _text(value: object) -> str:
    """Return a value on one line. What a partner sent cannot control the reader's terminal."""
    if value is None:
        return "-"
    if isinstance(value, datetime | UUID):
        return _plain(value)
    if isinstance(value, str) and value.isprintable():
        return visible(value)
    text = _as_it_is(value)
    return text if text.isprintable() else _json(value)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not printable")


_json = json.JSONEncoder(default=_plain).encode
_as_it_is = json.JSONEncoder(default=_plain, ensure_ascii=False).encode
_compact = json.JSONEncoder(default=_plain, separators=(",", ":")).encode


def _line(row: Mapping[str, Any]) -> bytes:
    """Return a row in compact JSON of ASCII, in a tenth of the time where all of it is that."""
    plain = {of: timestamp(it) if isinstance(it, datetime) else it for of, it in row.items()}
    line = msgspec.json.encode(plain)
    return line if line.isascii() else _compact(plain).encode()
