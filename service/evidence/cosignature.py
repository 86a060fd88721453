"""Cosignatures of witnesses on checkpoints (C2SP tlog-cosignature): Ed25519 and ML-DSA-44.

A witness states that it has seen this checkpoint, at a time of its own clock, as the largest
checkpoint of a log that never removed anything. Its public key is written like ours, with another
type.
"""

import struct
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteInvalid, key_id_of, key_parts

ED25519: Final = 0x04
ML_DSA_44: Final = 0x06
_PUBLIC_BYTES: Final = {ED25519: 32, ML_DSA_44: 1312}
_TIME_BYTES: Final = 8
_NAME_BYTES_MAX: Final = 200
"""An object is published under the name; and ML-DSA's message has room for 255."""
_TIME_MAX: Final = 253_402_300_799
"""The last second of the year 9999."""


class WitnessKey(NamedTuple):
    """The public key of a witness; `kind` is the byte of its type."""

    name: str
    kind: int
    public: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a key as witnesses publish it; raises ValueError."""
        name, key_id, raw = key_parts(text)
        if not raw or len(raw) != 1 + _PUBLIC_BYTES.get(raw[0], 0):
            raise ValueError("not the key of a witness; expected type 0x04, Ed25519, or 0x06")
        if len(name.encode()) > _NAME_BYTES_MAX:
            raise ValueError(f"a witness's name has at most {_NAME_BYTES_MAX} bytes")
        key = cls(name, raw[0], raw[1:])
        if key.key_id != key_id:
            raise ValueError("its id does not belong to it; expected a witness's key")
        return key

    @property
    def key_id(self) -> bytes:
        """The four bytes by which a signature names its key."""
        return key_id_of(self.name, bytes([self.kind]) + self.public)

    @property
    def which(self) -> tuple[str, bytes]:
        """Name and id, which a signature line has."""
        return self.name, self.key_id

    def cosigned_at(self, text: str, signature: bytes) -> datetime:
        """Return when the witness signed a note's text, by its clock; raises NoteInvalid."""
        seconds = int.from_bytes(signature[:_TIME_BYTES], "big")
        raw = signature[_TIME_BYTES:]
        try:
            if self.kind == ED25519:
                Ed25519PublicKey.from_public_bytes(self.public).verify(
                    raw, f"cosignature/v1\ntime {seconds}\n{text}".encode()
                )
            else:
                MLDSA44PublicKey.from_public_bytes(self.public).verify(
                    raw, _cosigned_message(self.name, seconds, Checkpoint.parse(text))
                )
        except (InvalidSignature, UnsupportedAlgorithm, ValueError, struct.error):
            raise NoteInvalid(f"the cosignature of {self.name} does not hold") from None
        if not 0 < seconds <= _TIME_MAX:
            raise NoteInvalid(f"the cosignature of {self.name} has no time")
        return datetime.fromtimestamp(seconds, UTC)


def _cosigned_message(name: str, seconds: int, checkpoint: Checkpoint) -> bytes:
    """Return what ML-DSA-44 signs: the names with their lengths, the time, 0 to the size, root."""
    cosigner, origin = name.encode(), checkpoint.origin.encode()
    return b"".join(
        (
            b"subtree/v1\n\0",
            struct.pack(">B", len(cosigner)) + cosigner,
            struct.pack(">Q", seconds),
            struct.pack(">B", len(origin)) + origin,
            struct.pack(">QQ", 0, checkpoint.size),
            checkpoint.root,
        )
    )
