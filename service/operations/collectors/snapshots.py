"""Since when something keeps dead rows: an open transaction, or a replication slot's snapshot."""

from datetime import datetime
from typing import Final, NamedTuple

from service.core.clock import Clock
from service.ledger.database import Database, always
from service.ledger.sql import queries

_SQL: Final = queries("service.operations.collectors")


class _Mark(NamedTuple):
    """The transaction id that was the next one at a time."""

    xid: int
    at: datetime


class SnapshotWatch:
    """Looks at open transactions, whose beginnings PostgreSQL knows, and at slots, which have none.

    Of a slot's snapshot it keeps a transaction id alone. So one is noted here with the time; as
    long as a slot is behind it, its snapshot is older than that. Where none is, the next is noted.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        """Begin with the first look."""
        self._database = database
        self._clock = clock
        self._mark: _Mark | None = None

    async def look(self) -> float:
        """Return how many seconds old the oldest is, of slots as far as this has looked."""
        xid = None if self._mark is None else self._mark.xid
        row = always(await self._database.reads.fetchrow(_SQL.oldest_transaction, xid))
        now = self._clock()
        if self._mark is None or not row["is_behind"]:
            self._mark = _Mark(row["next_xid"], now)
        seconds: float = row["seconds"]
        return max(seconds, (now - self._mark.at).total_seconds())
