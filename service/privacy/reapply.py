"""Doing the erasures of the list again, after a restore that knows nothing of them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from service.ledger.events import Cause
from service.privacy.documents import StoredDocuments
from service.privacy.erasure_list import Entry, ErasureList
from service.privacy.erasures import Erased, Erasures, Subject


class Reapplied(NamedTuple):
    """What was done for one entry of the list. `erased` None: the ledger has no such subject."""

    entry: Entry
    erased: Erased | None
    objects: int
    objects_left: int

    @property
    def changed(self) -> bool:
        """Whether the database had not shown the erasure in full."""
        return self.erased is not None and (
            self.erased.is_new or bool(self.erased.keys) or bool(self.objects)
        )


class Parts(NamedTuple):
    """What erasing in one ledger takes."""

    erasures: Erasures
    documents: StoredDocuments


async def reapply(
    listed: ErasureList,
    modes: Mapping[str, Parts],
    cause: Cause,
    advance: Callable[[int], object],
) -> list[Reapplied]:
    """Do each listed erasure; those that the database shows already change nothing.

    Raises EntryUnreadable, PublicationUnavailable, StorageUnavailable; what is left is done by
    running it again.
    """
    done: list[Reapplied] = []
    for name in await listed.names():
        entry = await listed.read(name)
        done.append(await _one(modes[entry.ledger], entry, cause))
        advance(1)
    return done


async def _one(parts: Parts, entry: Entry, cause: Cause) -> Reapplied:
    erased = await parts.erasures.reapply(entry, cause)
    if erased is None or entry.kind != "claim":
        return Reapplied(entry, erased, 0, 0)
    claim = Subject(entry.kind, entry.subject, entry.data_keys[0])
    removed = await parts.documents.remove(claim)
    return Reapplied(entry, erased, removed.objects, removed.left)
