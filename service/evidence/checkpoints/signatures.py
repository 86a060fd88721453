"""Signatures of others on checkpoints: lines that are added to a note after its publication.

Witnesses cosign checkpoints, and authorities time-stamp them. Signing waits for neither. The lines
are stored beside the checkpoints, and each is published once, as a separate object. What is stored
under a key need not be that key's, so several lines of one key can be: the first that holds counts.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from service.archive.port import Archive
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.names import signature_name
from service.evidence.countersigners import Countersigners
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
LINES_MAX: Final = 1000
"""So many lines under known keys are read at once. A checkpoint that somebody has given more may
count as not signed, which raises an alert."""

_SQL = queries("service.evidence.checkpoints")


async def add_signature(
    database: Database, archive: Archive | None, checkpoint: Checkpoint, signature: NoteSignature
) -> None:
    """Publish and store another party's signature of a stored checkpoint.

    The caller has verified it. It is published before it is stored: after a crash in between, the
    party is asked again. Raises ArchiveUnavailable.
    """
    origin, size, _ = checkpoint
    if archive is not None:
        await archive.put(signature_name(origin, size, *signature.key), signature.line.encode())
    await database.background.fetch(_SQL.add_signature, origin, size, *signature)


async def stored_lines(
    database: Database, checkpoint: Checkpoint, signers: Countersigners, *, are_known: bool = True
) -> list[NoteSignature]:
    """Return what is stored of a checkpoint under the keys of these signers, or under all others.

    Nothing is verified.
    """
    lines_max = LINES_MAX if are_known else SIGNATURES_MAX
    row = (checkpoint.origin, checkpoint.size, *signers.columns, are_known, lines_max)
    return [NoteSignature(*one) for one in await database.background.fetch(_SQL.signatures, *row)]


async def full_note(
    database: Database, note: str, ours: Sequence[NoteKey], signers: Countersigners
) -> str:
    """Return a stored note with the signature lines that others have added since.

    Lines of `signers` are verified. Those that do not hold are left out, as are added lines under a
    key of `ours`: with an invalid one, whoever can write rows could make everybody refuse the note.
    Lines of others are left to the reader of the note. Raises NoteInvalid if the text is no note.
    """
    checkpoint, keys = Checkpoint.of_note(note), {(key.name, key.key_id) for key in ours}
    lines = await stored_lines(database, checkpoint, signers)
    lines += await stored_lines(database, checkpoint, signers, are_known=False)
    text, _ = split_note(note)
    return with_signatures(note, [one for one in signers.sound(text, lines) if one.key not in keys])


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
