"""Signatures of others on checkpoints: lines that are added to a note after its publication.

Witnesses cosign checkpoints, and authorities time-stamp them. Signing waits for neither. The lines
are stored beside the checkpoints, and each is published once, as a separate object.
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
    """Publish and store another party's signature of a stored checkpoint; a key's first one counts.

    The caller has verified it. It is published before it is stored: after a crash in between, the
    party is asked again. Raises ArchiveUnavailable.
    """
    origin, size, _ = checkpoint
    if archive is not None:
        await archive.put(signature_name(origin, size, *signature.key), signature.line.encode())
    await database.background.fetch(_SQL.add_signature, origin, size, *signature, SIGNATURES_MAX)


async def full_note(database: Database, note: str, ours: Sequence[NoteKey]) -> str:
    """Return a stored note with the signature lines that others have added since.

    Nothing is verified; the reader of the note does that. Added lines under a key of `ours` are
    left out: with an invalid one, whoever can write rows could make everybody refuse the note.
    Raises NoteInvalid if the text is not a note.
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
