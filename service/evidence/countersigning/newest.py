"""The newest checkpoint of a ledger that others may be shown."""

from collections.abc import Sequence
from typing import NamedTuple

from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import begun_lineages
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.note import NoteInvalid
from service.ledger.sql import queries

_SQL = queries("service.evidence.checkpoints")

Keys = Sequence[tuple[str, bytes]]
"""Names and ids."""


class Newest(NamedTuple):
    """A checkpoint, the note that we signed, and which of the requested keys have signed it."""

    checkpoint: Checkpoint
    note: str
    signed: frozenset[bytes]


async def newest(checkpoints: Checkpoints, keys: Keys) -> Newest | None:
    """Return the newest checkpoint of the present lineage, signed by our keys; None: there is none.

    If there is an archive, the checkpoint has to be published. One that is only stored may be of a
    database that lost a failover, and a witness that had signed it would never sign another one.
    Raises ArchiveUnavailable.
    """
    begun = await begun_lineages(checkpoints.ledger)
    if not begun:
        return None
    row = await checkpoints.ledger.database.background.fetchrow(
        _SQL.signed_by, begun[-1].origin, [name for name, _ in keys], [one for _, one in keys]
    )
    if row is None:
        return None
    try:
        checkpoint = Checkpoint.open(row["note"], checkpoints.keys)
    except NoteInvalid:
        return None  # making the next one says so, and `audit verify`
    published = checkpoints.published
    if published.has_archive and len(row["signed"]) < len(keys):
        there = await published.get(checkpoint.origin, checkpoint.size)
        if there is None or there[0] != checkpoint:
            return None
    return Newest(checkpoint, row["note"], frozenset(row["signed"]))
