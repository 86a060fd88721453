"""Lineages that a file's events begin, and the origins that they link."""

from collections.abc import Mapping, Sequence

import msgspec

from service.evidence.authorisation import Lineage, Unsound, lineage_of
from service.evidence.checkpoint import Checkpoint
from service.evidence.export.format import EventLine, EvidenceFault, decode_state
from service.evidence.note import NoteKey
from service.facts.lineages import LineageBegun


class _State(msgspec.Struct):
    data: LineageBegun


def lineage_begun(
    event: EventLine, keys: Sequence[NoteKey], ledger: str, before: Sequence[Lineage]
) -> Lineage:
    """Return the lineage that an event begins, after those `before`; raises EvidenceFault."""
    try:
        begun = decode_state(event.state, _State).data
        return lineage_of(begun, keys, ledger, before, event.position)
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, Unsound) else "it cannot be read"
        raise EvidenceFault(
            event.position, f"the lineage that begins here is not sound: {said}"
        ) from None


def check_linked(lineages: Sequence[Lineage], checkpoint: Checkpoint, older: Checkpoint) -> None:
    """Check that a checkpoint's log has all events of an older checkpoint; raises EvidenceFault.

    Goes from one lineage to the one before it, by the events with which they begin.
    """
    begun = {one.origin: one for one in lineages}
    origin, shared = checkpoint.origin, checkpoint.size
    while origin != older.origin:
        lineage = begun.pop(origin, None)
        if lineage is None or lineage.follows is None:
            raise EvidenceFault(
                None, f"nothing here links the older checkpoint's origin to {checkpoint.origin}"
            )
        shared = min(shared, lineage.shared_size)
        origin = lineage.follows
    if older.size > shared:
        message = f"the older checkpoint counts {older.size} events; this log has {shared} of them"
        raise EvidenceFault(shared + 1, message)


def compare_kept(
    kept: Checkpoint,
    checkpoint: Checkpoint,
    lineages: Sequence[Lineage],
    roots: Mapping[int, bytes],
) -> None:
    """Compare a file's checkpoint with one from elsewhere; raises EvidenceFault.

    `roots` are those that the file proves, by size.
    """
    check_linked(lineages, checkpoint, kept)
    if kept.size not in roots:
        message = f"nothing here tells of the first {kept.size} events: an export does"
        raise EvidenceFault(None, message)
    if roots[kept.size] != kept.root:
        message = f"the {kept.size} events are not those of the kept checkpoint: there are two logs"
        raise EvidenceFault(1, message)
