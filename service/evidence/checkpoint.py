"""Checkpoints of a log (C2SP tlog-checkpoint): origin, size and root hash in a signed note."""

import base64
import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from service.evidence.note import NoteInvalid, NoteKey, open_note
from service.ledger.merkle import HASH_BYTES

SIZE_MAX: Final = 2**63 - 1
"""The largest position that a ledger can hold."""
NOTE_BYTES_MAX: Final = 4096
"""More than a note has that we signed alone, as it is stored and published."""
SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


class Checkpoint(NamedTuple):
    """The head of a log: `size` events under a root hash of 32 bytes.

    The origin is `<name of the installation>/<ledger>/<lineage>`.
    """

    origin: str
    size: int
    root: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a note's text; raises NoteInvalid."""
        origin, size, encoded, *more = (*text.split("\n"), "", "")
        root = decoded_hash(encoded)
        is_text = text.endswith("\n") and more == ["", "", ""]  # and no extension line
        is_sized = SIZE.fullmatch(size) and int(size) <= SIZE_MAX
        if root is None or not (origin and is_text and is_sized):
            raise NoteInvalid("not a checkpoint")
        return cls(origin, int(size), root)

    @classmethod
    def open(cls, note: str, keys: Sequence[NoteKey]) -> Self:
        """Read a signed checkpoint; raises NoteInvalid."""
        return cls.parse(open_note(note, keys))

    @classmethod
    def of_note(cls, note: str) -> Self:
        """Read a checkpoint without checking its signature; raises NoteInvalid."""
        text, _, _ = note.rpartition("\n\n")
        return cls.parse(f"{text}\n")

    @property
    def ledger(self) -> str:
        """Whose log it is: accounts, live or test."""
        return ledger_of(self.origin)

    @property
    def lines(self) -> list[str]:
        """The three lines that are signed."""
        return [self.origin, str(self.size), encoded_hash(self.root)]

    def sign(self, key: NoteKey) -> str:
        """Return the signed note; raises ValueError for a public key."""
        return key.sign("\n".join((*self.lines, "")))


def ledger_of(origin: str) -> str:
    """Return the part of an origin that is its ledger, the last but one; "" if it has no three."""
    return origin.split("/")[-2] if origin.count("/") > 1 else ""


def encoded_hash(raw: bytes) -> str:
    """Return a hash as notes have it, in base64."""
    return base64.b64encode(raw).decode()


def decoded_hash(encoded: str) -> bytes | None:
    """Return the 32 bytes of a hash in a note; None for what is not its one spelling."""
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    return raw if len(raw) == HASH_BYTES and encoded_hash(raw) == encoded else None
