"""The signed note of an index of streams: all streams that had begun by a checkpoint.

The leaves are the streams' ids and the positions of their first events, sorted by id; the tree over
them is that of RFC 6962. Two different notes of one checkpoint show that one of them is false.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Self

from service.evidence.checkpoint import (
    SIZE,
    SIZE_MAX,
    Checkpoint,
    decoded_hash,
    encoded_hash,
)
from service.evidence.note import NoteInvalid, NoteKey, open_note

HEADING: Final = "claim-ledger streams v1"


class StreamsNote(NamedTuple):
    """An index of `streams` streams, under the root of their leaves, for a checkpoint."""

    checkpoint: Checkpoint
    streams: int
    root: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a note's text; raises NoteInvalid."""
        heading, *rest = text.split("\n")
        if heading != HEADING or len(rest) != len(("origin", "size", "root", "n", "index", "")):
            raise NoteInvalid("not a note of streams")
        checkpoint = Checkpoint.parse("\n".join((*rest[:3], "")))
        number, encoded, end = rest[3:]
        root = decoded_hash(encoded)
        if end or root is None or not SIZE.fullmatch(number) or int(number) > SIZE_MAX:
            raise NoteInvalid("not a note of streams")
        return cls(checkpoint, int(number), root)

    @classmethod
    def open(cls, note: str, keys: Sequence[NoteKey]) -> Self:
        """Read a signed note; raises NoteInvalid."""
        return cls.parse(open_note(note, keys))

    def sign(self, key: NoteKey) -> str:
        """Return the signed note; raises ValueError for a public key."""
        index = (str(self.streams), encoded_hash(self.root), "")
        return key.sign("\n".join((HEADING, *self.checkpoint.lines, *index)))


def stream_leaf(stream: bytes, position: int) -> bytes:
    """Return the leaf of a stream: of the 16 bytes of its id, and of its first event's position."""
    return sha256(b"\x00" + stream + position.to_bytes(8, "big")).digest()
