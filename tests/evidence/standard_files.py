"""A made-up log, and the files of proofs in the formats of others about it."""

from hashlib import sha256

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.format import EventLine, Receipt, to_text, to_texts
from service.evidence.export.standard_proofs import proof_files
from service.ledger.merkle import leaf_hash, leaf_record
from tests.evidence.evidence_world import KEY

STREAM = "0189a1b2-c3d4-8e5f-8a6b-7c8d9e0f1a2b"
ORIGIN = "example.com/claim-ledger/live/lin_1"


def tree_hash(leaves):
    """Return RFC 6962's hash of a tree."""
    if len(leaves) == 1:
        return leaves[0]
    at = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01" + tree_hash(leaves[:at]) + tree_hash(leaves[at:])).digest()


def path_of(index, leaves):
    """Return RFC 6962's audit path."""
    if len(leaves) == 1:
        return []
    at = 1 << (len(leaves) - 1).bit_length() - 1
    if index < at:
        return [*path_of(index, leaves[:at]), tree_hash(leaves[at:])]
    return [*path_of(index - at, leaves[at:]), tree_hash(leaves[:at])]


def receipt_of(count, positions) -> tuple[Receipt, Checkpoint]:
    """Return a receipt of some positions of a made-up log, and its checkpoint."""
    columns = [(at, at, STREAM, at, "ClaimCreated", b"{}") for at in range(1, count + 1)]
    leaves = [leaf_hash(leaf_record(*one)) for one in columns]
    events = [
        EventLine(
            position=at,
            append_id=at,
            originator_id=STREAM,
            originator_version=at,
            topic="ClaimCreated",
            state="{}",
            leaf_hash=to_text(leaves[at - 1]),
            proof=to_texts(path_of(at - 1, leaves)),
        )
        for at in positions
    ]
    checkpoint = Checkpoint(ORIGIN, count, tree_hash(leaves))
    note = checkpoint.sign(KEY)
    return Receipt(
        format="claim-ledger receipt v1",
        ledger="live",
        claim_id="clm_1",
        events=events,
        checkpoint=note,
    ), checkpoint


def files_of(count, positions, formats):
    """Return the files beside a receipt, by their endings, and the receipt's checkpoint."""
    receipt, checkpoint = receipt_of(count, positions)
    return dict(proof_files(receipt, checkpoint, formats, KEY)), checkpoint
