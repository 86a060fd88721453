"""COSE receipts (RFC 9942): a proof of inclusion in CBOR, with a signature of the root.

The structures are four lines of CBOR, so no library for COSE stands between them and the key.
"""

from collections.abc import Sequence
from typing import Final

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


def cose_receipt(key: NoteKey, checkpoint: Checkpoint, index: int, proof: Sequence[bytes]) -> bytes:
    """Return the receipt of a leaf whose proof leads to the checkpoint's root.

    Its payload is that root, and detached: whoever checks it makes the root from leaf and proof.
    The key is that of checkpoints, named by name and id; the issuer is the log, by its origin.
    Raises ValueError for a public key.
    """
    protected = _encoded(
        {
            _ALGORITHM: _EDDSA,
            _KEY_ID: f"{key.name}+{key.key_id.hex()}".encode(),
            _CWT_CLAIMS: {_ISSUER: checkpoint.origin},
            _VDS: _RFC9162_SHA256,
        }
    )
    # No note begins with the byte of an array: the key's signatures are never those of the other.
    signature = key.signature(_encoded(["Signature1", protected, b"", checkpoint.root]))
    proofs = {_INCLUSION: [_encoded([checkpoint.size, index, list(proof)])]}
    return _encoded(cbor2.CBORTag(_SIGN1, [protected, {_PROOFS: proofs}, None, signature]))


def _encoded(value: object) -> bytes:
    return cbor2.dumps(value, canonical=True)
