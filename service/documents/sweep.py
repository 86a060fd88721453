"""Deleting uploads that no claim references, from the table of uploads and from the bucket.

On request, so are objects of this ledger's entities that have no row at all, which a restore
leaves: the bucket is not restored with the database.

Each takes four steps, so that an interrupted sweep loses nothing and leaves nothing for ever:
1. under the claim's lock, mark the upload, unless a claim references it by now;
2. once all are marked, read that none does from the log and from what was set aside of it: rows may
   have been lost or altered, and what was set aside can be taken back;
3. delete its object;
4. delete its row. The next sweep resumes with every marked upload that still has a row.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from service.core.progress import Advance, Show
from service.documents.naming import Listed, named_aside, named_in_log
from service.documents.unknown import FOUND_MAX, of_entities, unknown
from service.ledger.decoding import Unread
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sql import queries
from service.storage.port import ObjectStore, StoredObject

T = TypeVar("T")

PAGE: Final = 10_000
"""Uploads that are read at once."""
AT_ONCE: Final = 4
"""Concurrent uploads: as many as a ledger's pool has connections by default."""

SECONDS_MAX: Final = 86_400.0
"""For a whole sweep."""

_SQL = queries("service.documents")


class StillLinked(Exception):
    """Claims' events name uploads to which, by the read model, none refers. Nothing was deleted."""


class AnotherSweep(Exception):
    """Another sweep of the same mode is running. Nothing was changed."""


class Orphan(NamedTuple):
    """An upload to sweep. `claim_stream` None: an object that no row knows."""

    storage_path: str
    claim_stream: UUID | None


class Swept(NamedTuple):
    """What happened to one upload, or would happen; `found` is its object, if there was one."""

    is_gone: bool
    found: StoredObject | None


class Sweep:
    """A sweep of one mode, of uploads minted before a moment."""

    def __init__(
        self,
        ledger: Ledger,
        store: ObjectStore,
        before: datetime,
        listed: Listed,
        *,
        dry_run: bool,
        with_unknown: bool = False,
    ) -> None:
        """`before` is at least an hour ago: no upload may be under way with a URL that old.

        `with_unknown`: objects that no row knows are swept, too.

        `listed` is asked about claims whose events were set aside: such a one is erased without an
        event.
        """
        self._ledger = ledger
        self._store = store
        self._before = before
        self._listed = listed
        self._dry_run = dry_run
        self._with_unknown = with_unknown
        self.unread: list[Unread] = []
        """Events that this service did not write. Uploads that they name are kept."""
        self.set_aside = 0
        """How many uploads are kept because an event of this service names them that was set
        aside."""
        self.unknown = 0
        """How many objects that no row knows are left alone: they are of no entity of this ledger,
        and another installation may have them in the same bucket."""

    async def run(self, show: Show) -> list[Swept]:
        """Sweep, and `show` how far it is.

        Raises StorageUnavailable, ArchiveUnavailable, StillLinked, or AnotherSweep.
        """
        name = self._ledger.name
        async with self._alone():
            uploads = [upload async for page in self._pages() for upload in page]
            uploads += await self._unknown() if self._with_unknown else ()
            with show(f"marking uploads of {name}", len(uploads)) as advance:
                are_free = await _few_at_once(self._forget, uploads, advance)
            free = [upload for upload, is_free in zip(uploads, are_free, strict=True) if is_free]
            unnamed = await self._unnamed(free, show)
            with show(f"sweeping {name}", len(unnamed)) as advance:
                swept = await _few_at_once(self._remove, unnamed, advance)
        return [Swept(is_gone=False, found=None)] * (len(uploads) - len(unnamed)) + swept

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Keep out other sweeps, which may take back marks while this one deletes what it marked.

        The lock is a transaction's, so that it can be held over a transaction pooler, too. Its
        connection is one of `writes`: the sweep's own work has those of `background`.
        """
        if self._dry_run:
            yield
            return
        name, writes = self._ledger.name, self._ledger.database.writes
        async with writes.transaction(SECONDS_MAX) as connection:
            if not await connection.fetchval(_SQL.sweep_alone.on(name), name):
                raise AnotherSweep("another sweep is running")
            yield

    async def _pages(self) -> AsyncIterator[list[Orphan]]:
        last = ""
        while page := await self._ledger.database.background.fetch(
            _SQL.orphans, self._before, last, PAGE
        ):
            yield [Orphan(*row) for row in page]
            last = page[-1]["storage_path"]

    async def _unknown(self) -> list[Orphan]:
        ours = list[str]()
        async for names in unknown(self._ledger, self._store, self._before):
            of_page = await of_entities(self._ledger, names)
            self.unknown += len(names) - len(of_page)
            ours += of_page
            if len(ours) >= FOUND_MAX:
                break
        return [Orphan(path, None) for path in ours]

    async def _remove(self, upload: Orphan) -> Swept:
        path = upload.storage_path
        found = (await self._store.under(path)).get(path)
        if self._dry_run:
            return Swept(is_gone=True, found=found)
        is_gone = found is None or await self._store.delete(path, found.generation)
        if is_gone:
            await self._ledger.database.background.fetch(_SQL.forgotten, path)
        return Swept(is_gone, found)

    async def _forget(self, upload: Orphan) -> bool:
        """Mark an upload unless a claim references it by now; no claim can without its row."""
        if self._dry_run or upload.claim_stream is None:
            return True
        async with self._ledger.transaction(background=BACKGROUND_SECONDS) as transaction:
            # Whoever makes the claim locks its stream too: either that claim is there when we look,
            # or our mark is when it looks.
            await transaction.lock(upload.claim_stream)
            now = await transaction.now()
            return await transaction.fetchrow(_SQL.forget, upload.storage_path, now) is not None

    async def _unnamed(self, uploads: Sequence[Orphan], show: Show) -> Sequence[Orphan]:
        """Return the uploads that no event names; the marks of others are taken back.

        What no event names when all are marked, none will: whoever makes a claim looks for marks.
        What was set aside is read after the log, because it stays there when it is taken back. An
        event that this service did not write links nothing, and is added to `unread`. What it names
        in the log is kept nevertheless, because nothing brings a deleted object back.

        Raises StillLinked, with every mark taken back, where a claim's event names an upload.
        """
        if not uploads:
            return []
        sought = {upload.storage_path.encode() for upload in uploads}
        linked, by_others, self.unread = await named_in_log(self._ledger, sought, show)
        if linked:
            await self._unforget(sought)
            first = min(map(min, linked.values())).decode()
            raise StillLinked(
                f"{len(linked)} claims refer to uploads that the read model claim_documents has "
                f"lost, such as {first}: `projections rebuild claim_documents`, and sweep again"
            )
        aside = await named_aside(self._ledger, sought, self._listed)
        self.set_aside = len(aside)
        kept = by_others | aside
        await self._unforget(kept)
        return [one for one in uploads if one.storage_path.encode() not in kept]

    async def _unforget(self, paths: Collection[bytes]) -> None:
        if paths and not self._dry_run:
            named = [path.decode() for path in paths]
            await self._ledger.database.background.fetch(_SQL.unforget, named)


async def _few_at_once(
    do: Callable[[Orphan], Awaitable[T]],
    uploads: Sequence[Orphan],
    advance: Advance,
) -> list[T]:
    done: list[T] = []
    for first in range(0, len(uploads), AT_ONCE):
        few = uploads[first : first + AT_ONCE]
        done += await asyncio.gather(*map(do, few))
        advance(len(few))
    return done
