"""Numbering events after they have committed (design decision 2).

Positions have no gap, and a reader that remembers the last position never misses an event: they go
only to committed rows, by one holder of a row lock. Within a stream, version n+1 draws its
append_id after n has committed, so the order within streams holds.
"""

from datetime import datetime
from typing import NamedTuple

import msgspec

from service.ledger.codec import State
from service.ledger.database import Database, transaction_on
from service.ledger.sql import Sql

BATCH_MAX = 2000
"""Events numbered in one transaction."""
BATCH_SECONDS_MAX = 30.0
"""Longer than a request may wait: a slow disk must still get a batch done."""

_PROBE = Sql("service.ledger", "sequencer_probe")
_HOLD = Sql("service.ledger", "sequencer_hold")
_NUMBER = Sql("service.ledger", "sequencer_number")
_LAG = Sql("service.ledger", "sequencer_lag")


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
        """Number one batch; answer how many events got a position, 0 when idle or not the holder.

        An idle step is one read: polling with a lock would draw a transaction id each time.
        """
        schema = self._database.schema
        async with self._database.connection(BATCH_SECONDS_MAX) as connection:
            if not await connection.fetchval(_PROBE.on(schema)):
                return 0
            async with transaction_on(connection):
                size = await connection.fetchval(_HOLD.on(schema))
                if size is None:
                    return 0
                return await connection.fetchval(_NUMBER.on(schema), size, BATCH_MAX) - size

    async def reachable(self) -> None:
        """Ask the ledger something cheap; raises LedgerUnavailable."""
        await self._database.fetchrow(_PROBE)

    async def lag(self) -> Lag:
        """Answer how far numbering is behind."""
        row = await self._database.fetchrow(_LAG)
        if row is None:
            return Lag(0, None, 0)
        oldest = row["oldest"]
        at = msgspec.json.decode(oldest, type=State).meta.at if oldest else None
        return Lag(row["waiting"], at, row["size"] or 0)
