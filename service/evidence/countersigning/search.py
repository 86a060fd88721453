"""Finding the newest checkpoint that has the required signatures of others."""

from collections.abc import Callable
from typing import NamedTuple

from service.evidence.checkpoints.signatures import LINES_MAX, with_signatures
from service.evidence.countersigners import Countersigners
from service.evidence.demands import Demands
from service.evidence.note import SIGNATURES_MAX, NoteInvalid, NoteSignature, split_note
from service.evidence.verdict import Countersigned
from service.ledger.database import Connection
from service.ledger.sql import queries

_SQL = queries("service.evidence.countersigning")
_STORED = queries("service.evidence.checkpoints")


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
    said, signers = "nobody has signed any", demands.countersigners
    for origin, size, note in await connection.fetch(_SQL.signed_notes.on(schema)):
        if not counts(origin, size):
            continue
        try:
            text, _ = split_note(note)
            lines = await _lines(connection, schema, (origin, size), signers)
            full = with_signatures(note, signers.sound(text, lines))
            return CountersignedNote(full, demands.met_by(full, size))
        except NoteInvalid as error:
            said = str(error)
    raise NoteInvalid(said)


async def _lines(
    connection: Connection, schema: str, which: tuple[str, int], signers: Countersigners
) -> list[NoteSignature]:
    """Return what is stored of a checkpoint under keys that count, and some of what others signed.

    So many lines of each are read (LINES_MAX, SIGNATURES_MAX): anybody's can be there.
    """
    rows = await connection.fetch(
        _SQL.demanded.on(schema), *which, *signers.columns, signers.anchors, LINES_MAX
    )
    others = (*which, *signers.columns, False, SIGNATURES_MAX)
    rows += await connection.fetch(_STORED.signatures.on(schema), *others)
    return [NoteSignature(*row) for row in rows]
