"""Applying projected writes to tables beside the live ones, inserts by COPY.

If others wait for a lock meanwhile, inserts are statements instead. PostgreSQL limits neither the
time of a COPY that waits for its client's rows nor that of its transaction, so a process that was
stopped during one would keep the lock until it continues.
"""

from collections.abc import Iterable
from uuid import UUID

from service.ledger.database import Connection
from service.ledger.projector import Insert, Table, Update, Values, Write, arrays, runs


class Batch:
    """Writes that may be applied in another order than they came in, with the same result.

    Inserts come first, all of a table at once; then the updates, in order within each table. An
    insert moves ahead of an earlier update, which changes the result only if that update affects
    its row. So an insert is not accepted if one of its ids is among the values of an earlier update
    of its table: then the batch is applied first, and a new one begins.
    """

    def __init__(self) -> None:
        self._inserts: dict[Table, list[Values]] = {}
        self._updates: dict[Table, list[Update]] = {}
        self._named: dict[Table, set[object]] = {}

    def take(self, write: Write) -> bool:
        """Take a write in; return False where it has to wait for a batch of its own."""
        table = write.table
        if isinstance(write, Insert):
            named = self._named.get(table)
            if named and any(write.row[place] in named for place in table.id_places):
                return False
            rows = self._inserts.get(table)
            if rows is None:
                rows = self._inserts[table] = []
            rows.append(write.row)
        else:
            self._updates.setdefault(table, []).append(write)
            named = (value for value in write.row if isinstance(value, str | UUID | bytes | int))
            self._named.setdefault(table, set()).update(named)
        return True

    async def apply(self, connection: Connection, schema: str, *, by_copy: bool) -> int:
        """Apply the writes to the tables of a schema; return how many rows were inserted."""
        for table, rows in self._inserts.items():
            if by_copy:
                await connection.copy_records_to_table(
                    table.name, schema_name=schema, columns=table.columns, records=rows
                )
            else:
                await connection.execute(table.insert.on(schema), *arrays(rows))
        for updates in self._updates.values():
            for statement, rows in runs(updates):
                await connection.execute(statement.on(schema), *arrays(rows))
        return sum(map(len, self._inserts.values()))


async def apply(
    connection: Connection, schema: str, writes: Iterable[Write], *, by_copy: bool = True
) -> int:
    """Apply writes to the tables of a schema as if in their order; return the rows inserted."""
    batch, inserted = Batch(), 0
    for write in writes:
        if not batch.take(write):
            inserted += await batch.apply(connection, schema, by_copy=by_copy)
            batch = Batch()
            batch.take(write)
    return inserted + await batch.apply(connection, schema, by_copy=by_copy)
