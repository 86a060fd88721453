"""Up to where the queue of a ledger needs no look: its dead rows alone are there (decision 2).

While anybody's snapshot is open, the queue keeps what was deleted from it since, and whoever reads
it from its beginning passes all of that each time.
"""

from time import monotonic
from typing import Final, NamedTuple

from service.ledger.database import Connection, Database, Row, always
from service.ledger.sql import queries

LOWEST: Final = -(2**63 - 1)
"""Below every append_id."""
LOOK_BACK_SECONDS = 60.0
"""How often what waits below the floor is looked for, where nothing should: the owner may put an
event back that somebody removed from the queue."""
MARK_SECONDS = 10.0
"""How old a mark has to be before it is noted who has begun: a transaction draws an event's id a
moment before its own, and is not seen to have begun in between."""

_SQL = queries("service.ledger")


class _Mark(NamedTuple):
    """An event with a number, and when it was seen; later, the first transaction yet to begin."""

    append_id: int
    at: float
    next_transaction: int | None = None


class Floor:
    """The append_id up to which no event waits for its number, as far as a sequencer knows.

    Ids are drawn before the commit, so a lower one may commit last. The floor is raised to an event
    that has had a number for some seconds once every transaction that has begun by then has ended,
    and what they appended has numbers, too. Open snapshots do not delay that; open transactions
    that write do.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.append_id = LOWEST
        self._mark: _Mark | None = None
        self._looked_back_at = -LOOK_BACK_SECONDS

    async def waits(self, connection: Connection) -> bool:
        """Return whether there may be anything to number; raise the floor where that is safe."""
        asked = monotonic()
        probe = _SQL.sequencer_probe.on(self._database.schema)
        seen = always(await connection.fetchrow(probe, self.append_id))
        # A log that ends below the floor was restored while this process ran, perhaps.
        if seen["last"] < self.append_id or await self._waits_below(connection):
            self.forget()
            return True
        if self._database.shares_snapshots:
            self._raise(seen, asked)
        return seen["oldest"] is not None

    def forget(self) -> None:
        """Begin below everything again."""
        self.append_id, self._mark = LOWEST, None

    def _raise(self, seen: Row, asked: float) -> None:
        """Raise the floor by what was seen after the time `asked`, perhaps long ago."""
        oldest, mark = seen["oldest"], self._mark
        if mark is None:
            self._mark = _Mark(seen["last"], monotonic())
        elif mark.next_transaction is None:
            if asked >= mark.at + MARK_SECONDS:
                self._mark = mark._replace(next_transaction=seen["next"])
        elif seen["xmin"] >= mark.next_transaction and (oldest is None or oldest > mark.append_id):
            self.append_id, self._mark = max(self.append_id, mark.append_id), None

    async def _waits_below(self, connection: Connection) -> bool:
        now = monotonic()
        if self.append_id == LOWEST or now < self._looked_back_at + LOOK_BACK_SECONDS:
            return False
        self._looked_back_at = now  # before a look that may take too long
        behind = _SQL.sequencer_behind.on(self._database.schema)
        return bool(await connection.fetchval(behind, self.append_id))
