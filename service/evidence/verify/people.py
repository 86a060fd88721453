"""Who could act, updated as the ledger of accounts grows, for the background verification.

The caller holds a connection for background work meanwhile. It must not wait for a second one,
whose holders may be waiting, too. So this reads by the connections of requests, whose holders wait
for no other connection.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from service.evidence.verify.known_actors import TOPICS, KnownActors
from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

STEP: Final = 5_000
"""Positions of the ledger of accounts that are read at once: some hundredths of a second."""

_SQL = queries("service.evidence.verify")


class People:
    """Keeps who could act during a pass: about 400 bytes for each key and person."""

    def __init__(self, accounts: Ledger) -> None:
        """Begin without anybody."""
        self._accounts = accounts
        self._reading = asyncio.Lock()
        self._forget()

    async def forget(self) -> None:
        """Forget everybody: no pass of this ledger needs them for a while."""
        async with self._reading:
            self._forget()

    def _forget(self) -> None:
        self._position, self._numbered = 0, KnownActors()
        self.known = self._numbered

    async def catch_up(self, seconds: float) -> bool:
        """Read new events; return whether all that is committed by now was read within `seconds`.

        Only what this service wrote counts. Events that wait for their number are read each time,
        and kept apart: they may be set aside, or be gone. Raises LedgerUnavailable.
        """
        ends_at = time.monotonic() + seconds
        reads = self._accounts.database.reads
        async with self._reading:
            while True:
                row = await reads.fetchrow(_SQL.size)
                size = 0 if row is None else row["size"]
                if size < self._position:  # restored to an earlier moment
                    self._forget()
                start, end = self._position, min(size, self._position + STEP)
                stored = await reads.fetch(_SQL.people_after, start, STEP, list(TOPICS))
                later = list[Row]()  # among them is what was numbered since the size was read
                for found in await self._accounts.ours(stored):
                    position = found["position"]
                    if position is None or position > end:
                        later.append(found)
                    else:
                        self._numbered.take(found["topic"], found["state"])
                self._position = end
                if end == size:
                    self.known = self._with(later)
                    return True
                if time.monotonic() > ends_at:
                    return False

    def _with(self, later: Sequence[Row]) -> KnownActors:
        known = self._numbered.continued() if later else self._numbered
        for one in later:
            known.take(one["topic"], one["state"])
        return known
