"""A receipt's proofs in standard formats: C2SP tlog-proof, and COSE receipts."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.cose import cose_receipt
from service.evidence.export.format import EventLine, Receipt, to_hashes, to_text
from service.evidence.note import NoteKey

ENTRY: Final = "entry"
TLOG_PROOF: Final = "tlog-proof"
COSE: Final = "cose"
FORMATS: Final = (TLOG_PROOF, COSE)
TLOG_PROOF_BEGINS: Final = b"c2sp.org/tlog-proof@v1\n"


class ProofFile(NamedTuple):
    """A file beside a receipt: `ending` follows the receipt's name and a dot."""

    ending: str
    content: bytes


def proof_files(
    receipt: Receipt, checkpoint: Checkpoint, formats: Collection[str], key: NoteKey | None
) -> Iterator[ProofFile]:
    """Yield, for each event of a verified receipt, its entry and its proofs.

    `key` signs COSE receipts, and is required for these. The hash of the entry is the leaf; other
    programs need the entry together with the proof.
    """
    for event in receipt.events:
        if not formats:
            return
        proof, index = to_hashes(event.proof or ()), event.position - 1
        yield _file(event, ENTRY, event.record())
        if TLOG_PROOF in formats:
            yield _file(event, TLOG_PROOF, tlog_proof(index, proof, receipt.checkpoint))
        if COSE in formats:
            if key is None:
                raise ValueError("a COSE receipt needs a key that signs")
            yield _file(event, COSE, cose_receipt(key, checkpoint, index, proof))


def tlog_proof(index: int, proof: Sequence[bytes], note: str) -> bytes:
    """Return a proof of inclusion as C2SP tlog-proof has it; `note` is the checkpoint's."""
    lines = [f"index {index}", *map(to_text, proof), "", note]
    return TLOG_PROOF_BEGINS + "\n".join(lines).encode()


def _file(event: EventLine, kind: str, content: bytes) -> ProofFile:
    return ProofFile(f"{event.position}.{kind}", content)
