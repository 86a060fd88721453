"""Applying the listed erasures again after a restore, which may have undone them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from service.archive.port import ArchiveUnavailable
from service.ledger.database import LedgerError
from service.ledger.decoding import Unread
from service.ledger.events import Cause, Unreadable
from service.privacy.documents import Removed, StoredDocuments
from service.privacy.erasure_list import EntryUnreadable, ErasureList, ListedErasure, WithoutMac
from service.privacy.erasure_subjects import ErasureSubjects, Subject
from service.privacy.erasures import Erased, Erasures, KeysRemain
from service.storage.port import StorageUnavailable

CAME_BACK: Final = "its keys were destroyed, and came back"
_FAULTS: Final = (EntryUnreadable, ArchiveUnavailable, Unreadable, LedgerError)
"""Faults of one entry that need not affect the next."""

SignedOut = Callable[[str, str], AbstractAsyncContextManager[None]]
"""Takes a ledger and the id of an entity or of a member of the team; removes the person's sessions
and sign-in links, and again when what is done inside is done."""


class Reapplied(NamedTuple):
    """What was done for one entry of the list. `erased` None: the ledger has no such subject."""

    entry: ListedErasure
    erased: Erased | None
    objects: int
    objects_left: int

    @property
    def changed(self) -> bool:
        """Whether the database lacked some of the erasure."""
        return self.erased is not None and (
            self.erased.is_new or bool(self.erased.keys) or bool(self.objects)
        )


class ReapplyFault(NamedTuple):
    """Why an entry, by its name in the list, was not fully applied; which keys are left of it."""

    entry: str
    fault: str
    keys_left: int = 0


class ReapplyOutcome(NamedTuple):
    """The outcome. An entry with a fault is in `done` too where its key is destroyed."""

    done: list[Reapplied]
    faults: list[ReapplyFault]


class Parts(NamedTuple):
    """What erasing in one ledger needs."""

    subjects: ErasureSubjects
    erasures: Erasures
    documents: StoredDocuments


class Reapply:
    """Applies the list: first keys and read models, which do not depend on storage."""

    def __init__(
        self, listed: ErasureList, modes: Mapping[str, Parts], signed_out: SignedOut, cause: Cause
    ) -> None:
        """`signed_out` is entered while an entity's address can still be found."""
        self._listed = listed
        self._modes = modes
        self._signed_out = signed_out
        self._cause = cause

    async def run(self, names: Sequence[str], advance: Callable[[int], object]) -> ReapplyOutcome:
        """Apply each listed erasure; those that the database has already change nothing.

        A failing entry is reported and does not stop the others; running again does the rest.
        `advance` is called twice for each entry: for its keys, and for its documents.
        """
        erased: list[tuple[str, ListedErasure, Erased | None]] = []
        faults: list[ReapplyFault] = []
        for name in names:
            try:
                entry = await self._read(name)
                was = await self._erase(entry)
                erased.append((name, entry, was))
                faults += [ReapplyFault(name, _strange(one)) for one in was.unread] if was else []
            except KeysRemain as error:
                faults.append(ReapplyFault(name, str(error), error.count))
            except WithoutMac as error:
                faults.append(ReapplyFault(name, str(error), await self._keys_left(error.entry)))
            except _FAULTS as error:
                faults.append(ReapplyFault(name, _words(error)))
            advance(1)
        done: list[Reapplied] = []
        for name, entry, was in erased:
            removed = Removed(0, 0)
            try:
                if was is not None and (left := await self._keys_left(entry)):
                    faults.append(ReapplyFault(name, CAME_BACK, left))
                removed = await self._remove(entry, was)
            except (StorageUnavailable, LedgerError) as error:
                faults.append(ReapplyFault(name, f"its documents remain: {_words(error)}"))
            done.append(Reapplied(entry, was, removed.objects, removed.left))
            advance(1)
        return ReapplyOutcome(done, faults)

    async def _read(self, name: str) -> ListedErasure:
        """Return an entry; one without a MAC only where there is nothing to do for it."""
        without: WithoutMac | None = None
        try:
            entry = await self._listed.read(name)
        except WithoutMac as error:
            entry, without = error.entry, error
        if entry.ledger not in self._modes or (entry.kind == "staff") != (
            entry.ledger == "accounts"
        ):
            raise EntryUnreadable(f"{name} names no ledger that has a {entry.kind}")
        if without and not await self._modes[entry.ledger].erasures.shows(entry):
            raise without
        return entry

    async def _erase(self, entry: ListedErasure) -> Erased | None:
        erasures = self._modes[entry.ledger].erasures
        if entry.kind in ("claim", "link") or not await erasures.has(entry):
            return await erasures.reapply(entry, self._cause)
        async with self._signed_out(entry.ledger, entry.subject):
            return await erasures.reapply(entry, self._cause)

    async def _keys_left(self, entry: ListedErasure) -> int:
        return await self._modes[entry.ledger].erasures.keys_left(entry)

    async def _remove(self, entry: ListedErasure, erased: Erased | None) -> Removed:
        if erased is None or entry.kind != "claim":
            return Removed(0, 0)
        claim = Subject(entry.kind, entry.subject, entry.data_keys[0])
        return await self._modes[entry.ledger].documents.remove(claim)


def _strange(event: Unread) -> str:
    place = f"version {event.version} of stream {event.stream_id}"
    return f"{place} had no effect: {event.fault}"


def _words(error: Exception) -> str:
    if isinstance(error, LedgerError):
        return f"the database did not do it ({type(error).__name__}: {error})"
    if isinstance(error, StorageUnavailable):
        return f"the document store is unavailable ({error})"
    return str(error)
