"""Deleting the objects of an erased claim or entity from storage, with retries."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from service.documents import paths
from service.documents.unknown import pages
from service.facts.claims import ClaimCreated, DocumentsAttached
from service.ledger.aside import set_aside
from service.ledger.erased import told
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sql import queries
from service.ledger.transaction import StreamPart
from service.privacy.aside import begun_aside
from service.privacy.erasure_subjects import Subject
from service.storage.port import NoBucket, ObjectStore

URL_LIFE_MAX: Final = timedelta(hours=1)
"""An upload URL lives for 15 minutes, and a slow upload ends a little later."""
CLAIM_BYTES_MAX: Final = 4 << 20
"""More than a request may have, which becomes the event."""
LOCKED_MAX: Final = 100
"""Objects that are deleted at once: each may need a lock of its own, of which a server has few."""
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
        """Take what the events and the table of uploads are in, and the bucket's store."""
        self._ledger = ledger
        self._store = store

    async def remove(self, claim: Subject) -> Removed:
        """Delete every object under a claim's paths, linked or not; raises StorageUnavailable.

        The store itself is asked which there are: rows may have been lost or altered. Where the
        table of uploads names other paths, of which an altered row may be another claim's, their
        objects are left.
        """
        rows = await self._ledger.database.reads.fetch(_SQL.uploads_of_claim, claim.stream_id)
        own = await self._prefix(claim)
        foreign = sum(not (own and row["storage_path"].startswith(own)) for row in rows)
        try:
            gone, left = await self._empty(own) if own else Removed(0, 0)
        except NoBucket:
            if rows or await self._is_linked(claim):
                raise
            return Removed(0, 0)
        if not left + foreign:
            before = self._ledger.clock() - URL_LIFE_MAX
            await self._ledger.database.writes.fetch(_SQL.forget_uploads, claim.stream_id, before)
        return Removed(gone, left + foreign)

    async def remove_rest(self, entity_id: str) -> Removed:
        """Delete every object of an entity that no claim refers to which has not been erased.

        Once its claims' documents are removed, these are uploads without a claim, and what a
        restore lost the rows of. Raises StorageUnavailable.
        """
        gone, left, prefix = 0, 0, paths.entity_prefix(entity_id)
        try:
            async for page in pages(self._store, prefix, LOCKED_MAX):
                linked = await self._take([one.name for one in page])
                free = [one for one in page if one.name not in linked]
                deleted = [await self._store.delete(one.name, one.generation) for one in free]
                gone, left = gone + sum(deleted), left + len(page) - sum(deleted)
        except NoBucket:
            if await self._ledger.database.reads.fetch(_SQL.any_upload_under, prefix):
                raise
        return Removed(gone, left)

    async def unclaimed(self, entity_id: str) -> int:
        """Return how many objects of an entity are of no claim; raises StorageUnavailable."""
        fetch, count = self._ledger.database.background.fetch, 0
        async for page in pages(self._store, paths.entity_prefix(entity_id)):
            count += len(await fetch(_SQL.unclaimed_uploads, [one.name for one in page]))
        return count

    async def _take(self, names: Sequence[str]) -> set[str]:
        """Take uploads from everybody but the caller; return those to which claims refer.

        Whoever makes a claim locks its stream, too, and then finds that they were taken.
        """
        async with self._ledger.transaction(background=BACKGROUND_SECONDS) as transaction:
            rows = await transaction.fetch(_SQL.streams_of_uploads, names)
            await transaction.lock(*(row["claim_stream"] for row in rows))
            linked = {row["path"] for row in await transaction.fetch(_SQL.linked_uploads, names)}
            await transaction.fetch(_SQL.take_uploads, [one for one in names if one not in linked])
        return linked

    async def _is_linked(self, claim: Subject) -> bool:
        """Return whether an event of this service says that a claim has documents."""
        stream, topic = claim.stream_id, DocumentsAttached.__name__
        fetch = self._ledger.database.background.fetch
        rows = await told(fetch, [stream], topic, CLAIM_BYTES_MAX)
        binding = await self._ledger.placing((row["append_id"], row["mac"]) for row in rows)
        aside = [one.topic async for _, one in set_aside(self._ledger, stream=stream)]
        return topic in aside or bool(binding.ours(rows))

    async def _prefix(self, claim: Subject) -> str | None:
        """Return what a claim's paths begin with, as its event has it; None: it has none."""
        part = StreamPart((ClaimCreated,), 1, CLAIM_BYTES_MAX, 1)
        made = await self._ledger.read_part([claim.stream_id], part)
        if (aside := await begun_aside(self._ledger, claim.stream_id)) is not None:
            made = await self._ledger.decode([aside], personal=False)
        for one in made:
            if isinstance(one.event, ClaimCreated):
                secrets, event = await self._ledger.secrets(anew=False), one.event
                key = secrets.claim_key(event.partner_id, event.partner_claim_id)
                return paths.prefix(event.entity_id, key)
        return None

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
