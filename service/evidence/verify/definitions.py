"""What a ledger's schema consists of, compared with what the migrations of this release make.

The verification of a log trusts no rule of the database. But whoever removes a trigger, hides rows
by a policy, or puts a view where a table was, is about to change what is read, or has changed it.

A statement finds tables by its snapshot, while PostgreSQL describes them as they are by now. Where
a rebuild swaps tables in between, that shows a difference that never was. So a schema is compared
outside the snapshot in which its log is read, and again where it seems to differ. What a session
has of its own is looked at on the connection that reads the log.
"""

import re
import secrets
from typing import Final
from uuid import UUID

import migrations
from migrations.snapshots import Definition, definitions, shown, snapshot_of
from service.core.invisible_characters import visible
from service.evidence.verdict import Fault
from service.evidence.verify.shards import Shard, as_migrated, on_node
from service.ledger.database import Connection, Database
from service.ledger.event_macs import event_digest
from service.ledger.merkle import leaf_of
from service.ledger.session import SESSION
from service.ledger.sql import queries

SAMPLES: Final = 3
"""Random events whose hashes are made by the database's functions and by ours."""
LOOKS_MAX: Final = 3
"""Each would have to fall into a swap of its own to show a difference that never was."""
_SHOWN_MAX: Final = 200

_KINDS: Final = (
    *("relation", "inheritance", "policy", "rule", "trigger", "constraint", "function", "column"),
    *("index", "sequence", "type", "operator", "collation"),
)
"""In the order in which they are told: the first explains those that follow."""
_KEY: Final = re.compile(r"(?:PRIMARY KEY|UNIQUE) \((.*)\)")
_TRIGGER: Final = re.compile(r"CREATE (?:CONSTRAINT )?TRIGGER (\w+) ")
_ELSEWHERE: Final = (
    "The tables of {schema} are on another node of the cluster: what protects the log was not "
    "compared. Verify by a URL that leads to that node."
)
_SQL = queries("service.evidence.verify")

Definitions = frozenset[Definition]


async def definitions_fault(database: Database) -> Fault | None:
    """Return the first difference from what this release's migrations make.

    It is of the schema as it is now, whatever the caller's snapshot; it takes some 10 ms.
    """
    schema = database.schema
    async with database.reads.connection() as connection:
        return (
            await _revision_fault(connection, schema)
            or await _elsewhere_fault(connection, schema)
            or await _difference(connection, schema)
            or await session_fault(connection, schema)
        )


async def session_fault(connection: Connection, schema: str) -> Fault | None:
    """Return what is wrong with this connection: its settings, or the hashes that it makes.

    The schema has to be this release's.
    """
    return await _hashes_fault(connection, schema) or await _settings_fault(connection, schema)


async def _revision_fault(connection: Connection, schema: str) -> Fault | None:
    """Return a fault where the schema is another release's, as it is during an upgrade."""
    newest, found = migrations.newest_revision(), None
    if await connection.fetchval(_SQL.revision_readable.on(schema)):
        found = await connection.fetchval(_SQL.revision.on(schema))
    if found == newest:
        return None
    of = f"of revision {visible(str(found))[:_SHOWN_MAX]}" if found else "of an unknown revision"
    return Fault(
        None,
        f"The schema of {schema} is {of}, and that of this release is {newest}: what protects the "
        "log was not compared. Run `claim-ledger migrate`, or verify with the release of that "
        "revision.",
    )


async def _difference(connection: Connection, schema: str) -> Fault | None:
    made, found = await _found(connection, schema)
    differs = made ^ found
    for _ in range(LOOKS_MAX - 1):
        if not differs:
            break
        made, found = await _found(connection, schema)
        differs &= made ^ found
    if not differs:
        return None
    first = min(differs, key=lambda one: (_KINDS.index(one.kind), one not in made, one))
    beside = {one.part for one in differs if one[:2] == first[:2] and one in found}
    return Fault(None, _sentence(schema, first, beside, is_lacking=first in made))


async def _elsewhere_fault(connection: Connection, schema: str) -> Fault | None:
    if await connection.fetchval(_SQL.is_citus.on(schema)):
        shards = await connection.fetch(_SQL.shards.on(schema), schema)
        if not all(Shard(*row).is_here for row in shards):
            return Fault(None, _ELSEWHERE.format(schema=schema))
    return None


async def _found(connection: Connection, schema: str) -> tuple[Definitions, Definitions]:
    """Return what migrations make, and what is there."""
    rows = [tuple(row) for row in await connection.fetch(_SQL.definitions.on(schema), schema)]
    made, found = snapshot_of(schema), definitions(schema, rows)
    if made != found and await connection.fetchval(_SQL.is_citus.on(schema)):
        shards = [Shard(*row) for row in await connection.fetch(_SQL.shards.on(schema), schema)]
        return on_node(made, definitions(schema, as_migrated(rows)), shards)
    return made, found


def _sentence(schema: str, one: Definition, beside: set[str], *, is_lacking: bool) -> str:
    """Say what is wrong; `beside` are the parts of the same kind that it has instead."""
    of, part = f"{schema}.{one.name}", visible(shown(schema, one.part))[:_SHOWN_MAX]
    if one.kind == "function":
        return f"The function {of} is not the one that migrations made."
    if one.kind == "relation" and is_lacking:
        now = f"a {visible(min(beside))}" if beside else "gone"
        return f"{of} is {now}, where migrations made a {part}."
    if one.kind == "relation":
        return f"{of} is a {part} that no migration made."
    if not is_lacking:
        return f"{of} has this {one.kind}, which no migration made: {part}"
    return _unprotected(of, one) or f"{of} lacks this {one.kind}, which migrations made: {part}"


def _unprotected(of: str, lacking: Definition) -> str | None:
    """Say what may happen to a table that lacks a trigger, or a key."""
    if lacking.kind == "trigger" and (named := _TRIGGER.match(lacking.part)):
        return (
            f"The trigger {named[1]} of {of} is gone, off or replaced: nothing keeps the table "
            "from being changed."
        )
    if lacking.kind == "constraint" and (columns := _KEY.search(lacking.part)):
        key = columns[1].replace('"', "")
        return f"The key ({key}) of {of} is gone: nothing keeps its rows from being doubled."
    return None


async def _hashes_fault(connection: Connection, schema: str) -> Fault | None:
    for _ in range(SAMPLES):
        number, stream = 1 + secrets.randbelow(1 << 62), UUID(bytes=secrets.token_bytes(16))
        columns = (number + 1, stream, number, secrets.token_hex(8), secrets.token_bytes(64))
        row = await connection.fetchrow(_SQL.hashes.on(schema), number, *columns)
        if row is None or tuple(row) != (leaf_of(number, *columns), event_digest(*columns[1:])):
            return Fault(None, f"The functions of {schema} that make hashes make others.")
    return None


async def _settings_fault(connection: Connection, schema: str) -> Fault | None:
    """Return a fault where a session was not given what it should be, as behind a pooler."""
    rows = await connection.fetch(_SQL.session.on(schema), list(SESSION))
    for name, setting in sorted(tuple(row) for row in rows):
        if setting != SESSION[name]:
            return Fault(
                None,
                f"Sessions of {schema} have {name} = {visible(setting)[:_SHOWN_MAX]} from their "
                f"login or database, where {SESSION[name]} is meant: run `deploy/logins.sql`.",
            )
    return None
