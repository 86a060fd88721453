"""Deleting an erased claim's objects from storage, with retries."""

from datetime import timedelta
from typing import Final, NamedTuple

from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.privacy.erasures import Subject
from service.storage.port import ObjectStore

URL_LIFE_MAX: Final = timedelta(hours=1)
"""An upload URL lives for 15 minutes, and a slow upload ends a little later."""
ROUNDS_MAX: Final = 3
"""An object may be replaced through its URL while it is being removed."""

_SQL = queries("service.privacy")


class Removed(NamedTuple):
    """`objects` were deleted; `left` remain, because they were replaced meanwhile."""

    objects: int
    left: int


class StoredDocuments:
    """The documents of one mode: its table of uploads and its bucket."""

    def __init__(self, ledger: Ledger, store: ObjectStore) -> None:
        """`store` is asked only where a claim has uploads."""
        self._ledger = ledger
        self._store = store

    async def remove(self, claim: Subject) -> Removed:
        """Delete every object under a claim's paths, linked or not; raises StorageUnavailable."""
        rows = await self._ledger.database.reads.fetch(_SQL.uploads_of_claim, claim.stream_id)
        prefixes = {row["storage_path"].rpartition("/")[0] + "/" for row in rows}
        gone = left = 0
        for prefix in sorted(prefixes):
            removed = await self._empty(prefix)
            gone, left = gone + removed.objects, left + removed.left
        if rows and not left:
            before = self._ledger.clock() - URL_LIFE_MAX
            await self._ledger.database.writes.fetch(_SQL.forget_uploads, claim.stream_id, before)
        return Removed(gone, left)

    async def _empty(self, prefix: str) -> Removed:
        gone, left = 0, 0
        for _ in range(ROUNDS_MAX):
            found = await self._store.under(prefix)
            deleted = [await self._store.delete(one.name, one.generation) for one in found.values()]
            gone += sum(deleted)
            left = len(deleted) - sum(deleted)
            if not left:
                break
        return Removed(gone, left)
