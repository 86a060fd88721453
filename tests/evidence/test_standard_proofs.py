"""Proofs in the formats of others, read as their specifications have it."""

import base64
from hashlib import sha256

import cbor2
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.standard_proofs import COSE, TLOG_PROOF, proof_files
from service.evidence.note import open_note
from service.ledger.merkle import root_by_inclusion
from tests.evidence.evidence_world import KEY
from tests.evidence.standard_files import ORIGIN, files_of, receipt_of


def test_a_tlog_proof_has_the_lines_of_the_specification():
    """Index, hashes from the leaf on, an empty line and the checkpoint; also in a tree of one."""
    for count, position in ((1, 1), (7, 7), (13, 6)):
        files, checkpoint = files_of(count, [position], [TLOG_PROOF])
        assert list(files) == [f"{position}.entry", f"{position}.tlog-proof"]
        leaf = sha256(b"\x00" + files[f"{position}.entry"]).digest()
        head, _, note = files[f"{position}.tlog-proof"].decode().partition("\n\n")
        first, index, *hashes = head.split("\n")
        assert (first, index) == ("c2sp.org/tlog-proof@v1", f"index {position - 1}")
        proof = [base64.b64decode(one, validate=True) for one in hashes]
        assert Checkpoint.parse(open_note(note, [KEY])) == checkpoint
        assert root_by_inclusion(leaf, position - 1, count, proof) == checkpoint.root


def test_a_cose_receipt_has_the_structure_of_the_rfc():
    """A COSE_Sign1 of the detached root: vds protected, the one proof of inclusion unprotected."""
    public = Ed25519PublicKey.from_public_bytes(KEY.public)
    for count, position in ((1, 1), (13, 6)):
        files, checkpoint = files_of(count, [position], [COSE])
        found = cbor2.loads(files[f"{position}.cose"])
        protected, unprotected, payload, signature = found.value
        assert (found.tag, payload) == (18, None)
        assert cbor2.loads(protected) == {
            1: -8,
            4: f"example.com/claim-ledger+{KEY.key_id.hex()}".encode(),
            15: {1: ORIGIN},
            395: 1,
        }
        assert (list(unprotected), list(unprotected[396])) == ([396], [-1])
        (encoded,) = unprotected[396][-1]
        size, index, path = cbor2.loads(encoded)
        assert (size, index) == (count, position - 1)
        leaf = sha256(b"\x00" + files[f"{position}.entry"]).digest()
        root = root_by_inclusion(leaf, index, size, path)
        public.verify(signature, cbor2.dumps(["Signature1", protected, b"", root]))
        with pytest.raises(InvalidSignature):
            public.verify(signature, cbor2.dumps(["Signature1", protected, b"", bytes(32)]))
        assert root == checkpoint.root


def test_every_event_has_files_of_its_own():
    """Of the formats that are asked for; without any there is none."""
    both, _ = files_of(9, [2, 5], [TLOG_PROOF, COSE])
    assert sorted(both) == sorted(
        f"{at}.{kind}" for at in (2, 5) for kind in ("entry", "tlog-proof", "cose")
    )
    assert files_of(9, [2, 5], []) == ({}, receipt_of(9, [])[1])
    receipt, checkpoint = receipt_of(3, [1])
    with pytest.raises(ValueError, match="needs a key"):
        list(proof_files(receipt, checkpoint, [COSE], None))
    with pytest.raises(ValueError, match="a public key cannot sign"):
        list(proof_files(receipt, checkpoint, [COSE], KEY._replace(seed=None)))
