"""Deleting uploads that no claim references, from the table of uploads and from the bucket.

Each takes four steps, so that an interrupted sweep loses nothing and leaves nothing for ever:
1. under the claim's lock, mark the upload, unless a claim references it by now;
2. read from the log that none does, a page of uploads at once: rows may have been lost or altered;
3. delete its object;
4. delete its row. The next sweep resumes with every marked upload that still has a row.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from service.facts.claims import DocumentsAttached
from service.facts.privacy import PersonalDataErased
from service.ledger.database import Row
from service.ledger.ledger import Ledger, StreamPart
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.scan import each_of
from service.ledger.sql import queries
from service.storage.port import ObjectStore, StoredObject

T = TypeVar("T")

PAGE: Final = 10_000
"""Uploads for which the log is read once."""
AT_ONCE: Final = 4
"""Concurrent uploads: as many as a ledger's pool has connections by default."""

VERSIONS_MAX: Final = 1_000_000
ERASURE_BYTES_MAX: Final = 64 << 10
"""Far more than the event has by which a claim was erased."""

_PATH: Final = re.compile(rb'(?<=")entities/[^"\\]+(?=")')
"""A path, as a whole value in the stored form of an event."""

_SQL = queries("service.documents")


class StillLinked(Exception):
    """Claims' events name uploads to which, by the read model, none refers. Nothing was deleted."""


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
        """Sweep, reporting progress to `advance`. Raises StorageUnavailable or StillLinked."""
        swept: list[Swept] = []
        async for page in self._pages():
            are_free = await _few_at_once(self._forget, page)
            free = [upload for upload, is_free in zip(page, are_free, strict=True) if is_free]
            await self._refuse_linked([upload["storage_path"] for upload in free])
            kept = len(page) - len(free)
            swept += [Swept(is_gone=False, found=None)] * kept
            advance(kept)
            swept += await _few_at_once(self._remove, free, advance)
        return swept

    async def _pages(self) -> AsyncIterator[list[Row]]:
        last = ""
        while page := await self._ledger.database.background.fetch(
            _SQL.orphans, self._before, last, PAGE
        ):
            yield page
            last = page[-1]["storage_path"]

    async def _remove(self, upload: Row) -> Swept:
        path = upload["storage_path"]
        found = (await self._store.under(path)).get(path)
        if self._dry_run:
            return Swept(is_gone=True, found=found)
        is_gone = found is None or await self._store.delete(path, found.generation)
        if is_gone:
            await self._ledger.database.background.fetch(_SQL.forgotten, path)
        return Swept(is_gone, found)

    async def _forget(self, upload: Row) -> bool:
        """Mark an upload unless a claim references it by now."""
        if self._dry_run:
            return True
        async with self._ledger.transaction(background=BACKGROUND_SECONDS) as transaction:
            # Whoever makes the claim locks its stream too: either that claim is there when we look,
            # or our mark is when it looks.
            await transaction.lock(upload["claim_stream"])
            now = await transaction.now()
            return await transaction.fetchrow(_SQL.forget, upload["storage_path"], now) is not None

    async def _refuse_linked(self, paths: Sequence[str]) -> None:
        """Raise StillLinked, with every mark taken back, where a claim's event names an upload.

        What no event names when all are marked, none will: whoever makes a claim looks for marks.
        """
        if not paths:
            return
        sought, linked = {path.encode() for path in paths}, dict[UUID, bytes]()
        async for rows in each_of(self._ledger, [DocumentsAttached], lambda _: None):
            for row in rows:
                if not sought.isdisjoint(named := _PATH.findall(row["state"])):
                    linked[row["originator_id"]] = next(one for one in named if one in sought)
        part = StreamPart([PersonalDataErased], VERSIONS_MAX, ERASURE_BYTES_MAX, len(linked))
        for erased in await self._ledger.read_part(list(linked), part) if linked else ():
            linked.pop(erased.stream_id, None)
        if linked:
            if not self._dry_run:
                await self._ledger.database.background.fetch(_SQL.unforget, paths)
            first = next(iter(linked.values())).decode()
            raise StillLinked(
                f"{len(linked)} claims refer to uploads that the read model claim_documents has "
                f"lost, such as {first}: `projections rebuild claim_documents`, and sweep again"
            )


async def _few_at_once(
    do: Callable[[Row], Awaitable[T]],
    uploads: Sequence[Row],
    advance: Callable[[int], object] = lambda _steps: None,
) -> list[T]:
    done: list[T] = []
    for first in range(0, len(uploads), AT_ONCE):
        few = uploads[first : first + AT_ONCE]
        done += await asyncio.gather(*map(do, few))
        advance(len(few))
    return done
