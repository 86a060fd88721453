"""The tables that a rebuild builds beside the live ones, and their way into the live schema.

A table keeps the names of its indexes and constraints on the way, as each schema has its own.
"""

from typing import NamedTuple

from service.ledger.database import Connection, Row
from service.ledger.read_model import ReadModel, RebuildRefused
from service.ledger.sql import queries

_SQL = queries("service.ledger.rebuild")

_HAS = "select to_regclass($1) is not null"


class QualifiedName(NamedTuple):
    """A table of a read model, by the schema that it is in."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class Shadow:
    """The new tables of a read model in `<ledger>_next`."""

    def __init__(self, model: ReadModel) -> None:
        """Nothing is made yet."""
        self._model = model
        self._indexes: list[str] = []

    async def create(self, connection: Connection) -> None:
        """Make empty tables like the live ones, with their primary keys and no other index.

        What an interrupted rebuild left is dropped first. Primary keys are there from the start
        because updates find their rows by them; the other indexes are cheaper once the rows are in.
        """
        model, self._indexes = self._model, []
        async with connection.transaction():
            for schema in (model.next_schema, model.previous_schema):
                await _make_schema(connection, schema, model.ledger.name)
            await clear(connection, model.next_schema)
            for table in model.tables:
                await self._create(connection, table)

    async def index(self, connection: Connection) -> None:
        """Make the other indexes, and the planner's statistics."""
        for statement in self._indexes:
            await connection.execute(statement)
        for table in self._model.tables:
            await connection.execute(f"analyze {self._model.next_schema}.{table}")

    async def _create(self, connection: Connection, name: str) -> None:
        live, new = (
            QualifiedName(self._model.ledger.name, name),
            QualifiedName(self._model.next_schema, name),
        )
        facts = await connection.fetchrow(_SQL.table_facts.on(live.schema), str(live))
        if facts is None:
            raise RebuildRefused(f"there is no table {live}: run `claim-ledger migrate`")
        await connection.execute(
            f"create table {new} (like {live} including all excluding indexes)"
        )
        if facts["options"]:
            await connection.execute(f"alter table {new} set ({facts['options']})")
        await give_rights(connection, live, new)
        for index in await connection.fetch(_SQL.table_indexes.on(live.schema), str(live)):
            statement = _index_on(live, new, index)
            if index["is_primary"]:
                await connection.execute(statement)
            else:
                self._indexes.append(statement)
        if facts["owner"] != await connection.fetchval("select current_user"):
            await connection.execute(f'alter table {new} owner to "{facts["owner"]}"')


async def give_rights(connection: Connection, live: QualifiedName, new: QualifiedName) -> None:
    """Let those use a table who may use the live one."""
    for right in await connection.fetch(_SQL.table_rights.on(live.schema), str(live)):
        option = " with grant option" if right["is_grantable"] else ""
        grant = f"grant {right['privilege_type']} on {new} to {right['grantee']}{option}"
        await connection.execute(grant)


async def clear(connection: Connection, schema: str) -> None:
    """Drop every table of a schema: an interrupted rebuild may have been another read model's."""
    for row in await connection.fetch(_SQL.schema_tables.on(schema), schema):
        await connection.execute(f"drop table {row['name']}")


async def drop(connection: Connection, model: ReadModel, schema: str) -> None:
    """Drop what a schema has of a read model's tables."""
    for name in model.tables:
        await connection.execute(f"drop table if exists {QualifiedName(schema, name)}")


async def has_all(connection: Connection, model: ReadModel, schema: str) -> bool:
    """Return whether a schema has each of a read model's tables."""
    names = [str(QualifiedName(schema, name)) for name in model.tables]
    return all([await connection.fetchval(_HAS, name) for name in names])


async def move(connection: Connection, model: ReadModel, source: str, target: str) -> None:
    """Move a read model's tables from one schema to another, in the caller's transaction."""
    for name in model.tables:
        await connection.execute(f"alter table {QualifiedName(source, name)} set schema {target}")


async def _make_schema(connection: Connection, schema: str, live: str) -> None:
    """Make a schema, open to those to whom the live one is: its tables keep their own rights.

    Asked first: `if not exists` wants the right to create schemas even where there is one.
    """
    if await connection.fetchval("select to_regnamespace($1) is not null", schema):
        return
    await connection.execute(f"create schema {schema}")
    for row in await connection.fetch(_SQL.schema_users.on(live), live):
        await connection.execute(f"grant usage on schema {schema} to {row['grantee']}")


def _index_on(live: QualifiedName, new: QualifiedName, index: Row) -> str:
    if index["constraint_def"]:
        return f"alter table {new} add constraint {index['name']} {index['constraint_def']}"
    return str(index["index_def"]).replace(f" ON {live} ", f" ON {new} ", 1)
