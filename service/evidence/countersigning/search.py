"""Finding the newest checkpoint that has the required signatures of others."""

from collections.abc import Callable
from typing import NamedTuple

from service.evidence.checkpoints.signatures import with_signatures
from service.evidence.demands import Demands
from service.evidence.note import NoteInvalid, NoteSignature, split_note
from service.evidence.verdict import Countersigned
from service.ledger.database import Connection
from service.ledger.sql import queries

_SQL = queries("service.evidence.countersigning")


class CountersignedNote(NamedTuple):
    """A checkpoint's note with all signature lines, and which of the required ones it has."""

    note: str
    found: Countersigned


async def newest_countersigned(
    connection: Connection, schema: str, demands: Demands, counts: Callable[[str, int], bool]
) -> CountersignedNote:
    """Return it, of the checkpoints whose origin and size `counts`.

    Our own signature is not verified here. Raises NoteInvalid, which says why there is none.
    """
    notes: dict[tuple[str, int], tuple[str, list[NoteSignature]]] = {}
    for origin, size, note, *signature in await connection.fetch(_SQL.signed_notes.on(schema)):
        if counts(origin, size):
            notes.setdefault((origin, size), (note, []))[1].append(NoteSignature(*signature))
    said, signers = "nobody has signed any", demands.countersigners
    for (_, size), (note, signatures) in notes.items():
        try:
            text, _ = split_note(note)
            full = with_signatures(note, signers.sound(text, signatures))
            return CountersignedNote(full, demands.met_by(full, size))
        except NoteInvalid as error:
            said = str(error)
    raise NoteInvalid(said)
