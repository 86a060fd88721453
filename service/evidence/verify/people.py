"""Who could act, updated as the ledger of accounts grows, for the background verification.

The caller holds a connection for background work meanwhile. It must not wait for a second one,
whose holders may be waiting, too. So this reads by the connections of requests, whose holders wait
for no other connection.
"""

import asyncio
import time
from typing import Final

from service.evidence.verify.known_actors import TOPICS, KnownActors
from service.ledger.database import Database
from service.ledger.sql import queries

STEP: Final = 5_000
"""Positions of the ledger of accounts that are read at once: some hundredths of a second."""

_SQL = queries("service.evidence.verify")


class People:
    """Keeps who could act during a pass: about 400 bytes for each key and person."""

    def __init__(self, accounts: Database) -> None:
        """Begin without anybody."""
        self._accounts = accounts
        self._reading = asyncio.Lock()
        self._position, self.known = 0, KnownActors()

    async def forget(self) -> None:
        """Forget everybody: no pass of this ledger needs them for a while."""
        async with self._reading:
            self._position, self.known = 0, KnownActors()

    async def catch_up(self, seconds: float) -> bool:
        """Read new events; return whether all that is committed by now was read within `seconds`.

        Events that wait for their number are read each time: what they say about somebody comes
        after what the log says. Raises LedgerUnavailable.
        """
        ends_at = time.monotonic() + seconds
        async with self._reading:
            while True:
                row = await self._accounts.reads.fetchrow(_SQL.size)
                size = 0 if row is None else row["size"]
                if size < self._position:  # restored to an earlier moment
                    self._position, self.known = 0, KnownActors()
                sql, start = _SQL.people_after, self._position
                for found in await self._accounts.reads.fetch(sql, start, STEP, list(TOPICS)):
                    self.known.take(found["topic"], found["state"])
                self._position = min(size, start + STEP)
                if self._position == size:
                    return True
                if time.monotonic() > ends_at:
                    return False
