"""Numbering events after they have committed (decision 2).

Positions have no gap, and a reader that remembers the last position never misses an event: they go
only to committed rows, by one holder of a row lock. Within a stream, version n+1 draws its
append_id after n has committed, so the order within streams holds. As it numbers events it extends
the Merkle tree over them (decision 21).
"""

from datetime import datetime
from typing import NamedTuple

from service.ledger.codec import happened_at
from service.ledger.database import Connection, Database, LedgerError, Row, transaction_on
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries

BATCH_MAX = 2000
"""Events numbered in one transaction."""
BATCH_SECONDS_MAX = 30.0
"""Longer than a request may wait: a slow disk must still get a batch done."""
TREE_PART = 50_000
"""Events whose hashes join the tree of an older log in one transaction: about half a second."""

_SQL = queries("service.ledger")


class Lag(NamedTuple):
    """How far numbering is behind: events, when the oldest of them happened, the log's size."""

    waiting: int
    oldest_at: datetime | None
    size: int


class Sequencer:
    """Numbers one ledger's events. Any number may run; a row lock makes one of them the holder."""

    def __init__(self, database: Database) -> None:
        """`database` is the ledger's."""
        self._database = database

    async def step(self) -> int:
        """Give one batch positions; return how many events got one, 0 when idle or not the holder.

        An idle step is one read: polling with a lock would draw a transaction id each time.
        """
        while True:
            async with self._database.connection(BATCH_SECONDS_MAX) as connection:
                if not await connection.fetchval(_SQL.sequencer_probe.on(self._database.schema)):
                    return 0
                async with transaction_on(connection):
                    head = await self._hold(connection)
                    if head is None or head["tree"] is not None:
                        return await self._number(connection, head)
                    await self._grow(connection, head)

    async def number(self, connection: Connection) -> int:
        """Do so in the caller's transaction; return 0, too, while another process numbers.

        And where the log has no tree yet: `step` makes it, which may take minutes.
        """
        head = await self._hold(connection)
        if head is not None and head["tree"] is None:
            return 0
        return await self._number(connection, head)

    async def _hold(self, connection: Connection) -> Row | None:
        return await connection.fetchrow(_SQL.sequencer_hold.on(self._database.schema))

    async def _number(self, connection: Connection, head: Row | None) -> int:
        if head is None:
            return 0
        schema = self._database.schema
        tree = CompactRange.from_bytes(head["size"], head["tree"])
        rows = await connection.fetch(_SQL.sequencer_number.on(schema), head["size"], BATCH_MAX)
        tree.extend(row["leaf_hash"] for row in rows)
        if rows:
            await connection.execute(_SQL.sequencer_advance.on(schema), tree.size, tree.to_bytes())
        return len(rows)

    async def _grow(self, connection: Connection, head: Row) -> None:
        """Make the next part of the tree of a log that is older than trees, and keep it."""
        schema, size = self._database.schema, head["size"]
        tree = CompactRange.from_bytes(head["part_size"], head["part"])
        end = min(tree.size + TREE_PART, size)
        rows = await connection.fetch(_SQL.leaf_hashes.on(schema), tree.size, end)
        tree.extend(row["leaf_hash"] for row in rows)
        if tree.size != end:
            raise LedgerError(f"positions up to {end} are missing from the log")
        await connection.execute(_SQL.sequencer_grow.on(schema), tree.size, tree.to_bytes())

    async def reachable(self) -> None:
        """Ask the ledger something cheap; raises LedgerUnavailable."""
        await self._database.fetchrow(_SQL.sequencer_probe)

    async def lag(self) -> Lag:
        """Return how far numbering is behind."""
        row = await self._database.fetchrow(_SQL.sequencer_lag)
        if row is None:
            return Lag(0, None, 0)
        return Lag(row["waiting"], happened_at(row["oldest"]), row["size"] or 0)
