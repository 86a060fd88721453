"""What others have signed of checkpoints: lines that a note gets after it was published.

Witnesses cosign, and authorities time-stamp; neither is waited for by signing. The lines are kept
beside the checkpoints, and published once, each as an object of its own.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from service.archive.port import Archive
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.names import signature_name
from service.evidence.note import (
    NOTE_MAX,
    SIGNATURES_MAX,
    NoteInvalid,
    NoteKey,
    NoteSignature,
    split_note,
)
from service.ledger.database import Database
from service.ledger.sql import queries

SIGNATURE_BYTES_MAX: Final = 32_768

_SQL = queries("service.evidence.checkpoints")


async def add_signature(
    database: Database, archive: Archive | None, checkpoint: Checkpoint, signature: NoteSignature
) -> None:
    """Publish and store what somebody signed of a stored checkpoint; a key's first line counts.

    The caller has verified it. What is stored was published: after a crash between the two it is
    asked for again. Raises ArchiveUnavailable.
    """
    origin, size, _ = checkpoint
    if archive is not None:
        await archive.put(signature_name(origin, size, *signature.key), signature.line.encode())
    await database.background.fetch(_SQL.add_signature, origin, size, *signature, SIGNATURES_MAX)


async def full_note(database: Database, note: str, ours: Sequence[NoteKey]) -> str:
    """Return a stored note with the signature lines that others have added since.

    Nothing is verified; who reads the note does that. But no other adds a line of a key of `ours`:
    whoever can write rows could spoil the note for everybody by one that does not hold. Raises
    NoteInvalid for what is no note.
    """
    checkpoint, keys = Checkpoint.of_note(note), {(key.name, key.key_id) for key in ours}
    rows = await database.background.fetch(_SQL.signatures, checkpoint.origin, checkpoint.size)
    found = [NoteSignature(*row) for row in rows]
    return with_signatures(note, [one for one in found if one.key not in keys])


def with_signatures(note: str, signatures: list[NoteSignature]) -> str:
    """Return a note with the lines of more signatures, as many as it can have."""
    _, there = split_note(note)
    known, full = {one.key for one in there}, note
    for one in signatures[: SIGNATURES_MAX - len(there)]:
        with suppress(NoteInvalid):  # a name that none can have would spoil the note
            line = NoteSignature.parse(one.line.removesuffix("\n")).line
            if one.key not in known and len(full) + len(line) <= NOTE_MAX:
                known.add(one.key)
                full += line
    return full
