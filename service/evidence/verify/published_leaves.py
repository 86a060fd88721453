"""The hashes that were published with checkpoints: joined, they make each signed root."""

from service.archive.port import ObjectTooLarge
from service.core.counted import counted
from service.evidence.checkpoint import Checkpoint
from service.evidence.lineages import Lineages
from service.evidence.note import NoteInvalid
from service.evidence.verdict import Fault
from service.evidence.verify.expectations import Evidence, ReadNote
from service.ledger.merkle import HASH_BYTES, CompactRange, split_hashes


async def leaves_fault(evidence: Evidence, lineages: Lineages) -> Fault | None:
    """Return the first published hashes of a lineage of this log that are missing or altered.

    Raises ArchiveUnavailable.
    """
    if not evidence.has_leaves:
        return None
    for lineage in lineages.begun:
        tree = CompactRange()
        for note in evidence.published or ():
            if note.origin == lineage.origin:
                fault = await _next(evidence, note, tree)
                if fault is not None:
                    return fault
    return None


async def _next(evidence: Evidence, note: ReadNote, tree: CompactRange) -> Fault | None:
    """Grow the tree by the hashes of the next note of an origin; return what is wrong with them."""
    what = f"The hashes published with the checkpoint of {counted(note.size, 'event')}"
    due = max(0, note.size - tree.size) * HASH_BYTES
    others = Fault(tree.size + 1, f"{what} are not as many as there are events.")
    try:
        joined = await evidence.read(note.leaves_name, due)
    except ObjectTooLarge:
        return others
    if joined is None:
        return Fault(tree.size + 1, f"{what} are missing.")
    if not due or len(joined) != due:
        return others
    first = tree.size + 1
    tree.extend(split_hashes(joined))
    try:
        root = Checkpoint.open(note.text or "", evidence.keys).root
    except NoteInvalid as error:
        return Fault(
            note.size, f"The published checkpoint of {counted(note.size, 'event')}: {error}."
        )
    return None if tree.root() == root else Fault(first, f"{what} are not what was signed.")
