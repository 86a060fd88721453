"""Applying projected writes to tables beside the live ones, inserts by COPY."""

from collections.abc import Iterable
from uuid import UUID

from service.ledger.database import Connection
from service.ledger.ledger import Write
from service.ledger.rebuild.statements import Insert, plain_insert, table_of
from service.ledger.sql import Sql

Rows = list[tuple[object, ...]]


class Batch:
    """Writes that may be done in another order than they came in, with the same result.

    Inserts go first, all of a table at once; then the other statements, in their order within each
    table. An insert is moved ahead of a statement that came before it, which is the same unless
    that statement means its row. So it is not let in where one of its ids is among the values of
    an earlier statement on its table: then the batch is done first, and a new one begins.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self._inserts: dict[Insert, Rows] = {}
        self._changes: dict[str, list[tuple[Sql, Rows]]] = {}
        self._meant: dict[str, set[object]] = {}

    def take(self, write: Write) -> bool:
        """Take a write in; False: it has to wait for a batch of its own."""
        insert = plain_insert(write.statement)
        if insert is None:
            self._change(write)
            return True
        meant = self._meant.get(insert.table)
        if meant and any(write.row[place] in meant for place in insert.names):
            return False
        rows = self._inserts.get(insert)
        if rows is None:
            rows = self._inserts[insert] = []
        rows.append(write.row)
        return True

    async def apply(self, connection: Connection, schema: str) -> int:
        """Do the writes on the tables of a schema; answer how many rows were inserted."""
        for insert, rows in self._inserts.items():
            await connection.copy_records_to_table(
                insert.table, schema_name=schema, columns=insert.columns, records=rows
            )
        for runs in self._changes.values():
            for statement, rows in runs:
                columns = [list(column) for column in zip(*rows, strict=True)]
                await connection.execute(statement.on(schema), *columns)
        return sum(map(len, self._inserts.values()))

    def _change(self, write: Write) -> None:
        table = table_of(write.statement)
        runs = self._changes.setdefault(table, [])
        if not runs or runs[-1][0] is not write.statement:
            runs.append((write.statement, []))
        runs[-1][1].append(write.row)
        names = (value for value in write.row if isinstance(value, str | UUID | bytes | int))
        self._meant.setdefault(table, set()).update(names)


async def apply(connection: Connection, schema: str, writes: Iterable[Write]) -> int:
    """Do writes on the tables of a schema as if in their order; answer the rows inserted."""
    batch, inserted = Batch(), 0
    for write in writes:
        if not batch.take(write):
            inserted += await batch.apply(connection, schema)
            batch = Batch()
            batch.take(write)
    return inserted + await batch.apply(connection, schema)
