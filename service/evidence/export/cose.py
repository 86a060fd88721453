"""COSE receipts (RFC 9942): a proof of inclusion in CBOR, with a signature of the root.

The structures are four lines of CBOR, so no library for COSE stands between them and the key.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import cbor2

from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey

_SIGN1: Final = 18
_ALGORITHM: Final = 1
_EDDSA: Final = -8
_KEY_ID: Final = 4
_CWT_CLAIMS: Final = 15
_ISSUER: Final = 1
_VDS: Final = 395
_RFC9162_SHA256: Final = 1
_PROOFS: Final = 396
_INCLUSION: Final = -1
_UNREADABLE: Final = (
    *(AttributeError, LookupError, RecursionError, TypeError, ValueError),
    *(cbor2.CBORDecodeError, cbor2.CBOREncodeError),
)
"""What comes of bytes that have not the shape of a receipt."""


def cose_receipt(key: NoteKey, checkpoint: Checkpoint, index: int, proof: Sequence[bytes]) -> bytes:
    """Return the receipt of a leaf whose proof leads to the checkpoint's root.

    Its payload is that root, and detached: a verifier computes the root from the leaf and the
    proof. The key is that of checkpoints, identified by name and id; the issuer is the log,
    identified by its origin. Raises ValueError for a public key.
    """
    protected = _protected(_key_id(key), checkpoint.origin)
    signature = key.signature(_signed(protected, checkpoint.root))
    return CoseReceipt(protected, checkpoint.size, index, proof, signature).encoded()


class CoseReceipt(NamedTuple):
    """A receipt's contents. No signature covers `size`; `at`, the leaf's index, must fit it."""

    protected: bytes
    size: int
    at: int
    proof: Sequence[bytes]
    signature: bytes

    @classmethod
    def decode(cls, raw: bytes) -> "CoseReceipt":
        """Read a receipt in its one spelling; raises ValueError."""
        try:
            protected, unprotected, _, signature = cbor2.loads(raw).value
            size, at, proof = cbor2.loads(unprotected[_PROOFS][_INCLUSION][0])
            found = cls(protected, size, at, proof, signature)
            is_whole = {type(size), type(at)} == {int} and 0 <= at < size  # and not true for 1
            is_typed = {type(one) for one in (protected, signature, *proof)} == {bytes}
            if is_whole and is_typed and found.encoded() == raw:
                return found
        except _UNREADABLE:
            pass
        raise ValueError("not a COSE receipt as `audit prove` writes it")

    def encoded(self) -> bytes:
        """Return the file."""
        proofs = {_INCLUSION: [_encoded([self.size, self.at, list(self.proof)])]}
        parts = [self.protected, {_PROOFS: proofs}, None, self.signature]
        return _encoded(cbor2.CBORTag(_SIGN1, parts))

    def origin(self, keys: Sequence[NoteKey], root: bytes) -> str:
        """Return for which origin one of the keys signed the root; raises ValueError."""
        try:
            origin = cbor2.loads(self.protected)[_CWT_CLAIMS][_ISSUER]
        except _UNREADABLE:
            raise ValueError("its header cannot be read") from None
        if not isinstance(origin, str):
            raise ValueError("its header cannot be read")  # noqa: TRY004 - of the file, not of code
        named = [key for key in keys if _protected(_key_id(key), origin) == self.protected]
        if not named:
            raise ValueError("signed by no key that is known here")
        if not named[0].holds(self.signature, _signed(self.protected, root)):
            raise ValueError(f"the signature of {named[0].name} does not hold")
        return origin


def _key_id(key: NoteKey) -> bytes:
    return f"{key.name}+{key.key_id.hex()}".encode()


def _protected(key_id: bytes, origin: str) -> bytes:
    return _encoded(
        {
            _ALGORITHM: _EDDSA,
            _KEY_ID: key_id,
            _CWT_CLAIMS: {_ISSUER: origin},
            _VDS: _RFC9162_SHA256,
        }
    )


def _signed(protected: bytes, root: bytes) -> bytes:
    # No note begins with the byte of an array: the key's signatures are never those of the other.
    return _encoded(["Signature1", protected, b"", root])


def _encoded(value: object) -> bytes:
    return cbor2.dumps(value, canonical=True)
