"""Deleting uploads that no claim references, from the table of uploads and from the bucket.

Each takes three steps, so that an interrupted sweep loses nothing and leaves nothing for ever:
1. under the claim's lock, mark the upload, unless a claim references it by now;
2. delete its object;
3. delete its row. The next sweep resumes with every marked upload that still has a row.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Final, NamedTuple

from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sql import queries
from service.storage.port import ObjectStore, StoredObject

PAGE: Final = 500
AT_ONCE: Final = 4
"""Concurrent uploads: as many as a ledger's pool has connections by default."""

_SQL = queries("service.documents")


class Swept(NamedTuple):
    """What happened to one upload, or would happen; `found` is its object, if there was one."""

    is_gone: bool
    found: StoredObject | None


class Sweep:
    """A sweep of one mode, of uploads minted before a moment."""

    def __init__(
        self, ledger: Ledger, store: ObjectStore, before: datetime, *, dry_run: bool
    ) -> None:
        """`before` is at least an hour ago: no upload may be under way with a URL that old."""
        self._ledger = ledger
        self._store = store
        self._before = before
        self._dry_run = dry_run

    async def count(self) -> int:
        """Return how many uploads there are to look at."""
        row = await self._ledger.database.background.fetchrow(_SQL.orphans_count, self._before)
        return row["orphans"] if row is not None else 0

    async def run(self, advance: Callable[[int], object]) -> list[Swept]:
        """Sweep, reporting progress to `advance`. Raises StorageUnavailable."""
        swept: list[Swept] = []
        async for page in self._pages():
            for first in range(0, len(page), AT_ONCE):
                few = page[first : first + AT_ONCE]
                swept += await asyncio.gather(*map(self._one, few))
                advance(len(few))
        return swept

    async def _pages(self) -> AsyncIterator[list[Row]]:
        last = ""
        while page := await self._ledger.database.background.fetch(
            _SQL.orphans, self._before, last, PAGE
        ):
            yield page
            last = page[-1]["storage_path"]

    async def _one(self, upload: Row) -> Swept:
        path = upload["storage_path"]
        if not self._dry_run and not await self._forget(upload):
            return Swept(is_gone=False, found=None)
        found = (await self._store.under(path)).get(path)
        if self._dry_run:
            return Swept(is_gone=True, found=found)
        is_gone = found is None or await self._store.delete(path, found.generation)
        if is_gone:
            await self._ledger.database.background.fetch(_SQL.forgotten, path)
        return Swept(is_gone, found)

    async def _forget(self, upload: Row) -> bool:
        """Mark an upload unless a claim references it by now."""
        async with self._ledger.transaction(background=BACKGROUND_SECONDS) as transaction:
            # Whoever makes the claim locks its stream too: either that claim is there when we look,
            # or our mark is when it looks.
            await transaction.lock(upload["claim_stream"])
            now = await transaction.now()
            return await transaction.fetchrow(_SQL.forget, upload["storage_path"], now) is not None
