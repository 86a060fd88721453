"""Finding the exact event that was changed when every hash in the database was recomputed.

Each published checkpoint has the hashes of the leaves since the one before it. They are trusted if
they lead from a verified tree to the root that was signed.
"""

from service.archive.port import ArchiveUnavailable
from service.evidence.checkpoint import Checkpoint
from service.evidence.lineages import Lineages
from service.evidence.note import NoteInvalid
from service.evidence.verdict import Fault
from service.evidence.verify.expectations import Evidence, ReadNote
from service.evidence.verify.rows import log_rows
from service.evidence.verify.walk import Found, Held
from service.ledger.database import Connection
from service.ledger.merkle import HASH_BYTES, CompactRange, split_hashes


async def pinpoint(
    connection: Connection,
    schema: str,
    evidence: Evidence,
    lineages: Lineages,
    held: Held,
    found: Found,
) -> Fault:
    """Return the fault at the first position that differs from what was published, if known.

    A fault at a later row stays as it is unless the published hashes show an earlier one.
    """
    fault = found.fault
    if fault.position is None or fault.position <= held.size:
        return fault
    for note in evidence.published or ():
        checkpoint = _opened(note, evidence, lineages) if note.size > held.size else None
        if checkpoint is None:
            continue
        leaves = await _leaves(note, checkpoint, evidence, held)
        if leaves is None:
            continue
        position = await _first_difference(connection, schema, held.size, leaves)
        if position is None or (not found.is_range and position >= fault.position):
            return fault
        return Fault(
            position,
            f"The event at position {position} is not the one that was signed: the checkpoint of "
            f"{note.size} events was published with another hash of it.",
        )
    return fault


def _opened(note: ReadNote, evidence: Evidence, lineages: Lineages) -> Checkpoint | None:
    """Return a published checkpoint if it binds the log and is sound, or else None."""
    if note.text is None or lineages.sets_aside(note.origin, note.size):
        return None
    try:
        return Checkpoint.open(note.text, evidence.keys)
    except NoteInvalid:
        return None


async def _leaves(
    note: ReadNote, checkpoint: Checkpoint, evidence: Evidence, held: Held
) -> list[bytes] | None:
    """Return the hashes from the first leaf in doubt up to a checkpoint's size."""
    try:
        joined = await evidence.read(note.leaves_name, checkpoint.size * HASH_BYTES)
    except ArchiveUnavailable:  # the fault is known: without them its range is reported
        return None
    doubtful = (checkpoint.size - held.size) * HASH_BYTES
    if joined is None or len(joined) % HASH_BYTES or not 0 < doubtful <= len(joined):
        return None
    leaves = split_hashes(joined[-doubtful:])
    tree = CompactRange.from_bytes(*held)
    tree.extend(leaves)
    return leaves if tree.root() == checkpoint.root else None


async def _first_difference(
    connection: Connection, schema: str, held_size: int, leaves: list[bytes]
) -> int | None:
    """Return the first position whose row does not have the published hash."""
    due = held_size + 1
    async for rows in log_rows(connection, schema, due):
        for row in rows:
            if due > held_size + len(leaves):
                return None
            leaf = leaves[due - held_size - 1]
            if row.position != due or row.event is None or row.leaf() != leaf:
                return due
            due += 1
    return due if due <= held_size + len(leaves) else None
