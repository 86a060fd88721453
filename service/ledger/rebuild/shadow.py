"""The tables that a rebuild builds beside the live ones, and moves into the live schema.

A table keeps the names of its indexes and constraints in the move, because each schema has its own.
"""

from collections.abc import Sequence
from typing import NamedTuple

from service.ledger.database import Connection, Row
from service.ledger.read_model import ReadModel
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.together import together
from service.ledger.sql import queries

_SQL = queries("service.ledger.rebuild")
# These read PostgreSQL's catalogue alone, and name no table of a ledger.
_COLUMNS, _FACTS, _INDEXES, _RIGHTS, _TABLES, _USERS = (
    query.on("pg_catalog")
    for query in (
        *(_SQL.table_columns, _SQL.table_facts, _SQL.table_indexes, _SQL.table_rights),
        *(_SQL.schema_tables, _SQL.schema_users),
    )
)


class Later(NamedTuple):
    """Statements for after the rows are in. Constraints lock a table; indexes run in parallel."""

    indexes: list[str]
    constraints: list[str]


async def create(connection: Connection, model: ReadModel) -> Later:
    """Make empty tables like the live ones, with their primary keys and no other index.

    Return the statements that make the other indexes, which are cheaper once the rows are in;
    updates find their rows by the primary keys. What an interrupted rebuild left is dropped first.
    """
    later = Later([], [])
    async with connection.transaction():
        for schema in (model.next_schema, model.previous_schema):
            await _make_schema(connection, schema, model.ledger.name)
        await clear(connection, model.next_schema)
        for table in model.tables:
            live, new = f"{model.ledger.name}.{table}", f"{model.next_schema}.{table}"
            await _create_like(connection, live, new, later)
    return later


async def finish(connections: Sequence[Connection], later: Later) -> None:
    """Make the other indexes, one on each connection at a time."""
    for statement in later.constraints:
        await connections[0].execute(statement)
    left = list(reversed(later.indexes))

    async def make(connection: Connection) -> None:
        while left:
            await connection.execute(left.pop())

    await together(*map(make, connections))


async def analyze(connection: Connection, model: ReadModel, schema: str) -> None:
    """Make the planner's statistics, with the options that the live columns have now."""
    for table in model.tables:
        await _give_options(connection, f"{model.ledger.name}.{table}", f"{schema}.{table}")
        await connection.execute(f"analyze {schema}.{table}")


async def _create_like(connection: Connection, live: str, new: str, later: Later) -> None:
    facts = await connection.fetchrow(_FACTS, live)
    if facts is None:
        raise RebuildRefused(f"there is no table {live}: run `claim-ledger migrate`")
    await connection.execute(f"create table {new} (like {live} including all excluding indexes)")
    if facts["options"]:
        await connection.execute(f"alter table {new} set ({facts['options']})")
    await give_rights(connection, live, new)
    for index in await connection.fetch(_INDEXES, live):
        statement = _index_on(live, new, index)
        if index["is_primary"]:
            await connection.execute(statement)
        else:
            (later.constraints if index["constraint_def"] else later.indexes).append(statement)
    if facts["owner"] != await connection.fetchval("select current_user"):
        await connection.execute(f'alter table {new} owner to "{facts["owner"]}"')


async def _give_options(connection: Connection, live: str, new: str) -> None:
    for column in await connection.fetch(_COLUMNS, live):
        await connection.execute(
            f"alter table {new} alter column {column['name']} set ({column['options']})"
        )


async def give_rights(connection: Connection, live: str, new: str) -> None:
    """Grant those who may use the live table the same rights on the new one."""
    for right in await connection.fetch(_RIGHTS, live):
        option = " with grant option" if right["is_grantable"] else ""
        grant = f"grant {right['privilege_type']} on {new} to {right['grantee']}{option}"
        await connection.execute(grant)


async def clear(connection: Connection, schema: str) -> None:
    """Drop every table of a schema: an interrupted rebuild may have been another read model's."""
    for row in await connection.fetch(_TABLES, schema):
        await connection.execute(f"drop table {row['name']}")


async def drop(connection: Connection, model: ReadModel, schema: str) -> None:
    """Drop the tables of a read model that a schema contains."""
    for table in model.tables:
        await connection.execute(f"drop table if exists {schema}.{table}")


async def has_all(connection: Connection, model: ReadModel, schema: str) -> bool:
    """Return whether a schema has each of a read model's tables."""
    exists = "select bool_and(to_regclass(name) is not null) from unnest($1::text[]) as name"
    names = [f"{schema}.{table}" for table in model.tables]
    return bool(await connection.fetchval(exists, names))


async def move(connection: Connection, model: ReadModel, source: str, target: str) -> None:
    """Move a read model's tables from one schema to another, in the caller's transaction."""
    for table in model.tables:
        await connection.execute(f"alter table {source}.{table} set schema {target}")


async def _make_schema(connection: Connection, schema: str, live: str) -> None:
    """Make a schema, open to those to whom the live one is: its tables keep their own rights.

    Its existence is checked first: `if not exists` needs the right to create schemas even then.
    """
    if await connection.fetchval("select to_regnamespace($1) is not null", schema):
        return
    await connection.execute(f"create schema {schema}")
    for row in await connection.fetch(_USERS, live):
        await connection.execute(f"grant usage on schema {schema} to {row['grantee']}")


def _index_on(live: str, new: str, index: Row) -> str:
    if index["constraint_def"]:
        return f"alter table {new} add constraint {index['name']} {index['constraint_def']}"
    return str(index["index_def"]).replace(f" ON {live} ", f" ON {new} ", 1)
