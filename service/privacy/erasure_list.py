"""The list of erasures, kept outside the database, because a restored backup lacks later ones.

Each entry has a MAC, because it destroys keys when it is applied again, and whoever can write to
the archive can add objects. Its key is derived from one that every backup has, whatever was drawn
or replaced since.
"""

import hmac
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

import msgspec

from service.archive.port import Archive, ArchiveUnavailable, ObjectTooLarge
from service.ledger.service_keys import GetSecrets

PREFIX: Final = "erasures/"

_WITH_MAC: Final = re.compile(rb'(.*),"mac":"([0-9a-f]{64})"\}\n', re.DOTALL)
"""An entry as it is written: the MAC is the last member of its object, and is of the others."""

Kind = Literal["claim", "entity", "link", "staff"]

_ONCE_WITHOUT_MAC: Final[Collection[Kind]] = ("claim", "entity")
"""What releases listed that made no MACs yet."""


class ListedErasure(msgspec.Struct, frozen=True, kw_only=True):
    """A requested erasure. It holds nothing personal.

    The first of `data_keys` is the id of the subject's own stream; the others belong to the links
    that an entity redeemed. `reason` is what staff entered, `at` the time of the request. `began`
    is the SHA-256 of the event with which the subject's own stream began, as it is stored; None in
    entries of earlier releases.
    """

    ledger: str
    kind: Kind
    subject: str
    data_keys: Sequence[UUID]
    reason: str
    at: datetime
    began: str | None = None

    @property
    def name(self) -> str:
        """Where the entry lies: sorted by ledger, then by time."""
        milliseconds = int(self.at.timestamp() * 1000)
        return f"{PREFIX}{self.ledger}/{milliseconds:015d}-{self.subject}.json"


ENTRY_BYTES_MAX: Final = 64 << 20
"""A million data keys."""


class EntryUnreadable(Exception):
    """An object of the list is not an entry, or not one of this service; `str()` names it."""


class WithoutMac(EntryUnreadable):
    """An entry may be of an earlier release, or of whoever can write to the archive."""

    def __init__(self, name: str, entry: ListedErasure) -> None:
        super().__init__(
            f"{name} has no MAC: an earlier release wrote it, or whoever can write to the archive"
        )
        self.entry = entry


def subject_of(name: str) -> str:
    """Return the subject that an entry's name contains."""
    return name.rpartition("/")[2].partition("-")[2].removesuffix(".json")


class ErasureList:
    """Writes and reads entries; each is written once."""

    def __init__(
        self, archive: Archive, secrets: GetSecrets, *, takes_without_mac: bool = False
    ) -> None:
        """`archive` is a place that no restore of the database touches.

        Entries without a MAC are read only where `takes_without_mac`, and of what earlier releases,
        which made none, could erase.
        """
        self._archive = archive
        self._secrets = secrets
        self._takes_without_mac = takes_without_mac

    async def put(self, entry: ListedErasure) -> None:
        """Write an entry, before anything is erased.

        Of two requests for one subject in the same millisecond, which have one name, the first is
        listed, if it covers the keys of the second.

        Raises ArchiveUnavailable, also where the archive has something else under its name.
        """
        content = msgspec.json.encode(entry)
        mac = (await self._mac(entry.name, content)).encode()
        written = b'%b,"mac":"%b"}\n' % (content[:-1], mac)
        if await self._archive.put(entry.name, written):
            return
        # Ours, where an upload was repeated whose answer was lost.
        if not await self._is_listed(entry):
            raise ArchiveUnavailable(f"{entry.name} is there already, and is not what was written")

    async def _is_listed(self, entry: ListedErasure) -> bool:
        with suppress(EntryUnreadable):
            there = await self.read(entry.name)
            subjects = {(one.kind, one.subject, one.began) for one in (there, entry)}
            return len(subjects) == 1 and {*entry.data_keys} <= {*there.data_keys}
        return False

    async def names(self, ledger: str | None = None) -> list[str]:
        """Return the names of all entries, or of one ledger's, oldest first in each ledger."""
        return await self._archive.names(PREFIX if ledger is None else f"{PREFIX}{ledger}/")

    async def those_of(self, ledger: str, subjects: Collection[str]) -> set[str]:
        """Return those of some subjects whose erasure this service listed.

        Raises ArchiveUnavailable.
        """
        found = set[str]()
        for name in await self.names(ledger) if subjects else ():
            if subject_of(name) in subjects:
                with suppress(EntryUnreadable):
                    found.add((await self.read(name)).subject)
        return found

    async def read(self, name: str) -> ListedErasure:
        """Return an entry; raises EntryUnreadable, such as WithoutMac, and ArchiveUnavailable."""
        try:  # ValueError: a name that nothing is published under
            content = await self._archive.get(name, ENTRY_BYTES_MAX) or b""
            entry = msgspec.json.decode(content, type=ListedErasure)
        except (msgspec.DecodeError, ValueError, ObjectTooLarge) as error:
            raise EntryUnreadable(f"{name} is not an entry of the erasure list") from error
        if not entry.data_keys:
            raise EntryUnreadable(f"{name} names no data key")
        await self._check(name, content, entry)
        return entry

    async def _check(self, name: str, content: bytes, entry: ListedErasure) -> None:
        """Raise EntryUnreadable unless this service wrote an entry, under this name."""
        found = _WITH_MAC.fullmatch(content)
        if found is None:
            if entry.kind not in _ONCE_WITHOUT_MAC:
                raise EntryUnreadable(
                    f"{name} has no MAC: no release wrote one of a {entry.kind} so"
                )
            if not self._takes_without_mac:
                raise WithoutMac(name, entry)
        elif not hmac.compare_digest(await self._mac(name, found[1] + b"}"), found[2].decode()):
            raise EntryUnreadable(f"{name} is not what this service wrote: its MAC does not hold")

    async def _mac(self, name: str, content: bytes) -> str:
        key = (await self._secrets()).derived("listed erasure", name)
        return hmac.digest(key, content, "sha256").hex()
