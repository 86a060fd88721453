"""Checkpoints in their archive: `checkpoints/<origin>/<size, 20 digits>.txt` and `.leaves`.

A note's `.leaves` are the leaf hashes, 32 bytes each, from the checkpoint before it in its origin
(from the first event for an origin's first one) up to its own size. Lineages sort by age.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from service.archive.port import Archive, ArchiveUnavailable
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteInvalid, NoteKey

_TOP: Final = "checkpoints/"
_NOTE: Final = ".txt"
_LEAVES: Final = ".leaves"


class ArchiveEmpty(ArchiveUnavailable):
    """The place answers, and holds nothing of a ledger that has published before."""


class Published:
    """What has been published of one installation's checkpoints."""

    def __init__(self, place: Archive, keys: Sequence[NoteKey]) -> None:
        """`keys` tell whose notes are believed."""
        self._place = place
        self._keys = keys

    async def put(self, checkpoint: Checkpoint, note: str, leaves: bytes) -> None:
        """Publish a checkpoint; its leaves first, so that whoever finds the note finds them."""
        await self._place.put(_name(checkpoint) + _LEAVES, leaves)
        await self._place.put(_name(checkpoint) + _NOTE, note.encode())

    async def get(self, origin: str, size: int) -> tuple[Checkpoint, str] | None:
        """Return a checkpoint and its note; raises ArchiveUnavailable if it is not ours."""
        name = _name_of(origin, size) + _NOTE
        raw = await self._place.get(name)
        if raw is None:
            return None
        try:
            note = raw.decode()
            checkpoint = Checkpoint.open(note, self._keys)
        except (NoteInvalid, UnicodeDecodeError) as error:
            raise ArchiveUnavailable(
                f"{name}: {error}; if the key was replaced, its public key belongs at the end of "
                "CLAIM_LEDGER_CHECKPOINT_KEYS"
            ) from error
        if (checkpoint.origin, checkpoint.size) != (origin, size):
            raise ArchiveUnavailable(f"{name}: holds another checkpoint")
        return checkpoint, note

    async def has(self, origin: str, size: int) -> bool:
        """Return whether an object lies where a checkpoint is published."""
        with suppress(ValueError):
            return await self._place.get(_name_of(origin, size) + _NOTE) is not None
        return False

    async def leaves(self, origin: str, size: int) -> bytes | None:
        """Return the leaf hashes up to a checkpoint, as they were published."""
        return await self._place.get(_name_of(origin, size) + _LEAVES)

    async def sizes(self, origin: str, behind: int = 0) -> list[int]:
        """Return the sizes of an origin's checkpoints behind a size, smallest first."""
        after = _name_of(origin, behind) + _NOTE
        found = map(_parsed, await self._place.names(f"{_TOP}{origin}/", after=after))
        return [one[1] for one in found if one is not None and one[0] == origin]

    async def origins(self, homes: Collection[str]) -> list[str]:
        """Return the origins below `<key's name>/<ledger>`, oldest first."""
        names = [name for home in homes for name in await self._place.folders(f"{_TOP}{home}/")]
        return sorted((name.removeprefix(_TOP) for name in names), key=_age)


def _name(checkpoint: Checkpoint) -> str:
    return _name_of(checkpoint.origin, checkpoint.size)


def _name_of(origin: str, size: int) -> str:
    return f"{_TOP}{origin}/{size:020}"


def _age(origin: str) -> str:
    return origin.rpartition("/")[2]


def _parsed(name: str) -> tuple[str, int] | None:
    """Return the origin and size of a note's name; None for any other name."""
    origin, _, file = name.removeprefix(_TOP).rpartition("/")
    digits = file.removesuffix(_NOTE)
    if digits == file or not (digits.isascii() and digits.isdigit()):
        return None
    return origin, int(digits)
