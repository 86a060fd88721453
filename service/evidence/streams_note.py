"""The signed note of an index of streams: all streams that had begun by a checkpoint.

The leaves are the streams' ids and the positions of their first events, sorted by id; the tree over
them is that of RFC 6962. Two different notes of one checkpoint show that one of them is false.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Self

from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteInvalid, NoteKey, open_note
from service.ledger.merkle import HASH_BYTES

HEADING: Final = "claim-ledger streams v1"
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_NUMBER_MAX: Final = 2**63 - 1


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
        try:
            root = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise NoteInvalid("not a note of streams") from None
        is_hash = len(root) == HASH_BYTES and base64.b64encode(root).decode() == encoded
        if end or not is_hash or not _NUMBER.fullmatch(number) or int(number) > _NUMBER_MAX:
            raise NoteInvalid("not a note of streams")
        return cls(checkpoint, int(number), root)

    @classmethod
    def open(cls, note: str, keys: Sequence[NoteKey]) -> Self:
        """Read a signed note; raises NoteInvalid."""
        return cls.parse(open_note(note, keys))

    def sign(self, key: NoteKey) -> str:
        """Return the signed note; raises ValueError for a public key."""
        root = base64.b64encode(self.root).decode()
        return key.sign("\n".join((HEADING, *self.checkpoint.lines, str(self.streams), root, "")))


def stream_leaf(stream: bytes, position: int) -> bytes:
    """Return the leaf of a stream: of the 16 bytes of its id, and of its first event's position."""
    return sha256(b"\x00" + stream + position.to_bytes(8, "big")).digest()
