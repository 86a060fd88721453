"""The list of erasures, kept outside the database, because a restored backup lacks later ones."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

import msgspec

from service.archive.port import Archive

PREFIX: Final = "erasures/"

Kind = Literal["claim", "entity"]


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


class EntryUnreadable(Exception):
    """An object of the list is not an entry; `str()` names it."""


def subject_of(name: str) -> str:
    """Return the subject that an entry's name contains."""
    return name.rpartition("/")[2].partition("-")[2].removesuffix(".json")


class ErasureList:
    """Writes and reads entries; each is written once."""

    def __init__(self, archive: Archive) -> None:
        """`archive` is a place that no restore of the database touches."""
        self._archive = archive

    async def put(self, entry: ListedErasure) -> None:
        """Write an entry, before anything is erased; raises ArchiveUnavailable."""
        await self._archive.put(entry.name, msgspec.json.encode(entry) + b"\n")

    async def names(self) -> list[str]:
        """Return the names of all entries, oldest first in each ledger."""
        return await self._archive.names(PREFIX)

    async def read(self, name: str) -> ListedErasure:
        """Return an entry; raises EntryUnreadable and ArchiveUnavailable."""
        try:  # ValueError: a name that nothing is published under
            content = await self._archive.get(name)
            entry = msgspec.json.decode(content or b"", type=ListedErasure)
        except (msgspec.DecodeError, ValueError) as error:
            raise EntryUnreadable(f"{name} is not an entry of the erasure list") from error
        if not entry.data_keys:
            raise EntryUnreadable(f"{name} names no data key")
        return entry
