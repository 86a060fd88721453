"""Files with some of the log's events, each with the proof that it is in the log."""

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.format import EventLine, EvidenceFault, to_hashes
from service.ledger.merkle import root_by_inclusion


def check_event(event: EventLine, last: int, checkpoint: Checkpoint) -> None:
    """Verify an event after position `last`: its hash and its proof; raises EvidenceFault."""
    if event.position <= last or event.position > checkpoint.size:
        raise EvidenceFault(event.position, "events are out of order, or beyond the checkpoint")
    leaf = event.leaf()
    if event.proof is None:
        raise EvidenceFault(event.position, "the event has no proof")
    try:
        proof = to_hashes(event.proof)
        root = root_by_inclusion(leaf, event.position - 1, checkpoint.size, proof)
    except ValueError as error:
        raise EvidenceFault(event.position, f"the event's proof cannot hold: {error}") from None
    if root != checkpoint.root:
        raise EvidenceFault(event.position, "the event's proof does not lead to the root")
