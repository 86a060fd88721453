"""What protects a log in its database: triggers, keys, and functions that make hashes and events.

The verification of a log trusts none of these. But whoever removes one is about to change the log,
or has changed it, so they are compared with what the migrations created.
"""

import re
import secrets
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import migrations
from service.evidence.verdict import Fault
from service.ledger.database import Connection
from service.ledger.event_macs import event_digest
from service.ledger.merkle import leaf_of
from service.ledger.sql import queries

TABLES: Final = (
    "events",
    "log",
    "head",
    "checkpoints",
    "checkpoint_signatures",
    "public_ids",
    "set_aside",
)
KEYS: Final = frozenset(
    {
        ("events", "originator_id, originator_version"),
        ("events", "append_id"),
        ("log", "position"),
        ("log", "append_id"),
        ("head", "id"),
        ("pending", "append_id"),
        ("checkpoints", "origin, size"),
        ("checkpoint_signatures", "origin, size, name, key_id"),
        ("public_ids", "public_id"),
        ("set_aside", "id"),
    }
)
"""Tables with the columns by which no two of their rows are alike."""
SAMPLES: Final = 3
"""Random events whose hashes are made by the database's functions and by ours."""

_SQL = queries("service.evidence.verify")
_FUNCTION: Final = re.compile(r"^create (?:or replace )?function ledger\.(\w+)\(", re.MULTILINE)
_QUALIFIER: Final = re.compile(r"\bledger(?=\.\w)")
"""As migrations put a schema in its place."""
_BODY: Final = re.compile(r"as \$\$(.*?)\$\$", re.DOTALL)
_TRIGGER: Final = re.compile(
    r"^create trigger (\w+)[^;]*? on ledger\.(\w+)\s[^;]*?execute function ledger\.(\w+)\(",
    re.MULTILINE,
)


class Trigger(NamedTuple):
    """A trigger of a table, and the function that it calls."""

    table: str
    name: str
    function: str


async def definitions_fault(connection: Connection, schema: str) -> Fault | None:
    """Return the first difference from what this release's migrations make; None also for others.

    While an installation is upgraded, its schema may be another release's.
    """
    if not await connection.fetchval(_SQL.revision_readable.on(schema)):
        return None
    if await connection.fetchval(_SQL.revision.on(schema)) != migrations.newest_revision():
        return None
    return (
        await _trigger_fault(connection, schema)
        or await _key_fault(connection, schema)
        or await _function_fault(connection, schema)
    )


async def _trigger_fault(connection: Connection, schema: str) -> Fault | None:
    rows = await connection.fetch(_SQL.triggers.on(schema), schema, list(TABLES))
    found = {Trigger(*row) for row in rows}
    for trigger in sorted(made_triggers() - found):
        return Fault(
            None,
            f"The trigger {trigger.name} of {schema}.{trigger.table} is gone, off or replaced: "
            "nothing keeps the table from being changed.",
        )
    return None


async def _key_fault(connection: Connection, schema: str) -> Fault | None:
    tables = sorted({table for table, _ in KEYS})
    rows = await connection.fetch(_SQL.unique_keys.on(schema), schema, tables)
    for table, columns in sorted(KEYS - {tuple(row) for row in rows}):
        return Fault(
            None,
            f"The key ({columns}) of {schema}.{table} is gone: nothing keeps its rows from being "
            "doubled.",
        )
    return None


async def _function_fault(connection: Connection, schema: str) -> Fault | None:
    bodies = made_bodies()
    rows = await connection.fetch(_SQL.functions.on(schema), schema, list(bodies))
    found: dict[str, list[str]] = {}
    for name, body in rows:
        found.setdefault(name, []).append(body)
    for name, body in bodies.items():
        if found.get(name) != [_QUALIFIER.sub(schema, body)]:
            return Fault(None, f"The function {schema}.{name} is not the one that migrations made.")
    for _ in range(SAMPLES):
        number, stream = 1 + secrets.randbelow(1 << 62), UUID(bytes=secrets.token_bytes(16))
        columns = (number + 1, stream, number, secrets.token_hex(8), secrets.token_bytes(64))
        row = await connection.fetchrow(_SQL.hashes.on(schema), number, *columns)
        if row is None or tuple(row) != (leaf_of(number, *columns), event_digest(*columns[1:])):
            return Fault(None, f"The functions of {schema} that make hashes make others.")
    return None


@cache
def made_triggers() -> frozenset[Trigger]:
    """Return the triggers of the tables that migrations have made."""
    found = (_TRIGGER.findall(text) for text in _texts())
    every = {Trigger(table, name, function) for one in found for name, table, function in one}
    return frozenset(one for one in every if one.table in TABLES)


@cache
def made_bodies() -> Mapping[str, str]:
    """Return the bodies of functions as the last migration that made each has it."""
    bodies: dict[str, str] = {}
    for text in _texts():
        begins = [*_FUNCTION.finditer(text)]
        ends = [one.start() for one in begins[1:]] + [len(text)]
        for begin, end in zip(begins, ends, strict=False):
            body = _BODY.search(text, begin.end(), end)
            if body is not None:
                bodies[begin[1]] = body[1]
    return {name: bodies[name] for name in ("refuse_change", "refuse_loss", "set_aside_events")}


def _texts() -> list[str]:
    folder = Path(migrations.__file__).parent / "sql"
    return [one.read_text() for one in sorted(folder.glob("*.sql"))]
