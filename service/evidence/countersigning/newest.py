"""The newest checkpoint of a ledger that others may be shown."""

from typing import NamedTuple

from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import begun_lineages
from service.evidence.checkpoints.signatures import stored_lines
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.countersigners import Countersigners
from service.evidence.note import NoteInvalid, split_note
from service.ledger.sql import queries

_SQL = queries("service.evidence.checkpoints")


class Newest(NamedTuple):
    """A checkpoint, the note that we signed, and which keys have signed it, by name and id.

    `signed` has those of the requested ones under which a stored line holds.
    """

    checkpoint: Checkpoint
    note: str
    signed: frozenset[tuple[str, bytes]]


async def newest(checkpoints: Checkpoints, signers: Countersigners) -> Newest | None:
    """Return the newest checkpoint of the present lineage, signed by our keys; None: there is none.

    If there is an archive, the checkpoint has to be published. One that is only stored may be of a
    database that lost a failover, and a witness that had signed it would never sign another one.
    Raises ArchiveUnavailable.
    """
    begun = await begun_lineages(checkpoints.ledger)
    if not begun:
        return None
    database = checkpoints.ledger.database
    row = await database.background.fetchrow(_SQL.last, begun[-1].origin)
    if row is None:
        return None
    try:
        checkpoint = Checkpoint.open(row["note"], checkpoints.keys)
    except NoteInvalid:
        return None  # making the next one says so, and `audit verify`
    text, _ = split_note(row["note"])
    held = signers.held(text, await stored_lines(database, checkpoint, signers))
    signed, published = frozenset(line.key for line in held), checkpoints.published
    if published.has_archive and len(signed) < len(signers.keys):
        there = await published.get(checkpoint.origin, checkpoint.size)
        if there is None or there[0] != checkpoint:
            return None
    return Newest(checkpoint, row["note"], signed)
