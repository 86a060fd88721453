"""Who could act, updated as the ledger of accounts grows, for the background verification.

The caller holds a connection for background work meanwhile. It must not wait for a second one,
whose holders may be waiting, too. So this reads by the connections of requests, whose holders wait
for no other connection.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from service.evidence.verify.known_actors import STATE_BYTES_MAX, TOPICS, KnownActors
from service.ledger.database import Row
from service.ledger.decoding import PAGE_BYTES_MAX, is_full
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

STEP: Final = 5_000
"""Positions of the ledger of accounts that are read at once: some hundredths of a second.

Fewer where their events are large (PAGE_BYTES_MAX).
"""
WAITING_STEP: Final = 500

_SQL = queries("service.evidence.verify")


class People:
    """Keeps who could act during a pass: about 400 bytes for each key and person."""

    def __init__(self, accounts: Ledger) -> None:
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
            # First: what is numbered meanwhile is among it, or among what is read then.
            waiting = [one async for one in self._waiting()]
            while True:
                row = await reads.fetchrow(_SQL.size)
                size = 0 if row is None else row["size"]
                if size < self._position:  # restored to an earlier moment
                    self._forget()
                await self._read_on(min(size, self._position + STEP))
                if self._position == size:
                    self.known = self._with(waiting)
                    return True
                if time.monotonic() > ends_at:
                    return False

    async def _read_on(self, end: int) -> None:
        """Read what is numbered up to a position, or until it is a page."""
        start, limits = self._position, (STATE_BYTES_MAX, PAGE_BYTES_MAX)
        asked = (start, end - start, list(TOPICS), *limits)
        stored = await self._accounts.database.reads.fetch(_SQL.people_after, *asked)
        for found in await self._accounts.ours(stored):
            self._numbered.take(found["topic"], found["state"])
        self._position = stored[-1]["position"] if is_full(stored) else end

    async def _waiting(self) -> AsyncGenerator[Row]:
        """Yield what waits and is ours, page by page: anybody's may wait, and of any size."""
        last, reads = 0, self._accounts.database.reads
        while True:
            asked = (last, WAITING_STEP, list(TOPICS), STATE_BYTES_MAX)
            rows = await reads.fetch(_SQL.people_waiting, *asked)
            for one in await self._accounts.ours(rows):
                yield one
            if len(rows) < WAITING_STEP:
                return
            last = rows[-1]["append_id"]

    def _with(self, later: Sequence[Row]) -> KnownActors:
        known = self._numbered.continued() if later else self._numbered
        for one in later:
            known.take(one["topic"], one["state"])
        return known
