"""A ledger without PostgreSQL, for tests of commands that prove no race and no fault.

Only the adapter to PostgreSQL is replaced: appending, encryption, projectors and commands are the
real ones. Statements are known by their names (tests/memory_statements.py); one that nobody wrote
there fails as a KeyError.
tests/ledger/test_contract.py holds that the real ledger does the same.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from service.app.bootstrap import Service
from service.ledger.sql import Sql
from tests.memory_statements import READS, WRITES, Tables, Values
from tests.world import World, settings_for

WRITE = "service.ledger write"
_ROWS = re.compile(r"insert into \w+\.(\w+) \((.*)\)")
_COLUMNS = re.compile(r"insert into \w+\.\w+ \((.*)\)")


class Row(tuple[Any, ...]):  # noqa: SLOT001 - it has names beside its values
    """A row like the driver's: a tuple that also knows its columns' names."""

    names: Sequence[str]

    @classmethod
    def of(cls, values: Values) -> "Row":
        """Return a row with these values."""
        row = cls(values.values())
        row.names = list(values)
        return row

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)


class MemoryConnection:
    """The operations of a transaction that ledgers need from the driver's connection."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def fetch(self, statement: str, *args: object) -> list[Row]:
        """Return the rows of a statement."""
        name = _name(statement)
        rows_from = 20 if name == WRITE else None
        found = [Row.of(row) for row in READS[name](self._tables, *args[:rows_from])]
        if rows_from is not None:
            self._add_rows(statement, args[rows_from:], *found[0])
        return found

    def _add_rows(
        self,
        statement: str,
        columns: Sequence[Any],
        outcomes: Sequence[str],
        append_ids: Sequence[int],
    ) -> None:
        """Add the rows of read models, as the rest of the statement does."""
        at = 0
        for table, names in _ROWS.findall(statement):
            filled = names.split(", ")
            for nr, *row in zip(*columns[at : at + len(filled) + 1], strict=True):
                values = dict(zip(filled, row, strict=True))
                if "append_id" in values:
                    values["append_id"] = append_ids[values["append_id"] - 1]
                if outcomes[nr - 1] == "written":
                    self._tables.insert(table, _key(table, filled), **values)
            at += len(filled) + 1

    async def fetchrow(self, statement: str, *args: object) -> Row | None:
        """Return the first row of a statement."""
        return next(iter(await self.fetch(statement, *args)), None)

    async def fetchval(self, statement: str, *args: object) -> Any:
        """Return the first value of the first row."""
        row = await self.fetchrow(statement, *args)
        return None if row is None else row[0]

    async def execute(self, statement: str, *columns: Sequence[object]) -> None:
        """Write to a read model, one row at a time."""
        name = _name(statement)
        for row in zip(*columns, strict=True):
            if name.startswith("insert "):
                filled = _COLUMNS.search(statement)
                assert filled is not None
                values = dict(zip(filled[1].split(", "), row, strict=True))
                table = name.removeprefix("insert ")
                self._tables.insert(table, _key(table, list(values)), **values)
            else:
                WRITES[name](self._tables, *row)


class MemoryDatabase:
    """The adapter of one ledger; service.ledger.database.Database on PostgreSQL."""

    def __init__(
        self, _url: str, schema: str, *, deadline: float, **_of_postgresql: object
    ) -> None:
        self.schema = schema
        self.deadline_seconds = deadline
        self.tables = Tables()
        self.reads = self.writes = self.background = self  # one pool for all
        self.pools = dict[str, Any]()

    async def open(self) -> None:
        """Open nothing."""

    async def close(self) -> None:
        """Close nothing."""

    @asynccontextmanager
    async def transaction(
        self, _deadline: float | None = None
    ) -> AsyncGenerator[MemoryConnection, None]:
        """Run a transaction whose changes are undone if it fails."""
        outer, self.tables.undo = self.tables.undo, []
        try:
            yield MemoryConnection(self.tables)
        except BaseException:  # a cancelled transaction is undone, too
            for undo in reversed(self.tables.undo):
                undo()
            raise
        finally:
            self.tables.undo = outer

    connection = transaction

    async def fetch(self, sql: Sql, *args: object) -> list[Row]:
        """Return the rows of one statement."""
        async with self.transaction() as connection:
            return await connection.fetch(sql.on(self.schema), *args)

    async def fetchrow(self, sql: Sql, *args: object) -> Row | None:
        """Return the first row of one statement."""
        return next(iter(await self.fetch(sql, *args)), None)


@contextmanager
def in_memory() -> Iterator[None]:
    """Keep the ledgers of services built inside the block in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.app.databases.Database", MemoryDatabase)
        yield


def memory_service(settings: Any, **parts: Any) -> Service:
    """Return the parts of a service whose ledgers are in memory.

    Its clock shows a later millisecond at each look: ids are sorted by time, and without a round
    trip two may be drawn in one millisecond.
    """
    looks = count(1)
    begun = datetime.now(UTC)
    parts.setdefault("clock", lambda: begun + timedelta(milliseconds=next(looks)))
    with in_memory():
        return Service(settings, **parts)


def memory_world(mail_dir: Path, **parts: Any) -> World:
    """Return a service in memory and a client that calls it; nothing follows its log."""
    settings = settings_for("postgresql://nobody@127.0.0.1:1/none", mail_dir)
    return World(memory_service(settings, **parts), mail_dir)


def _name(statement: str) -> str:
    return statement.partition("\n")[0].removeprefix("-- ")


def _key(table: str, columns: Sequence[str]) -> Sequence[str]:
    """Return what identifies a row: a table's first column, as service.ledger.projector has it."""
    return columns[:2] if table == "connections" else columns[:1]
