"""Checkpoints that a person names: by size, by a time, or by the file of a note."""

from datetime import datetime

import click

from service.cli.audit.verify import note_in, opened
from service.cli.instant import instant
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import open_checkpoint
from service.ledger.database import Row
from service.ledger.sql import queries

_SQL = queries("service.evidence.proofs")


async def given_checkpoint(checkpoints: Checkpoints, given: str, option: str) -> Signed:
    """Return the stored checkpoint of a size, or the one in a file; fails if there is none."""
    if not given.isdecimal():
        note = note_in(given)
        checkpoint = opened(note, checkpoints.keys)
        if checkpoint.ledger != checkpoints.ledger.name:
            message = f"it is of {checkpoint.origin}; expected one of {checkpoints.ledger.name}"
            raise click.BadParameter(message, param_hint=option)
        return Signed(checkpoint, note)
    rows = await checkpoints.ledger.database.background.fetch(_SQL.of_size, int(given))
    present = (await lineages(checkpoints.ledger))[-1:]
    rows.sort(key=lambda row: row["origin"] not in {one.origin for one in present})
    if not rows:
        message = f"no checkpoint has {given} events: `audit checkpoint` makes one of all"
        raise click.BadParameter(message, param_hint=option)
    return await _stored(checkpoints, rows[0])


async def checkpoint_at(checkpoints: Checkpoints, at: str) -> Signed:
    """Return the stored checkpoint of a size, or the newest one that was made by a time."""
    if at.isdecimal():
        return await given_checkpoint(checkpoints, at, "--at")
    moment: datetime = instant(at)
    row = await checkpoints.ledger.database.background.fetchrow(_SQL.made_by, moment)
    if row is None:
        raise click.BadParameter("no checkpoint had been made by then", param_hint="--at")
    return await _stored(checkpoints, row)


async def _stored(checkpoints: Checkpoints, row: Row) -> Signed:
    """Return a stored checkpoint with what others have signed of it; raises EvidenceFault."""
    checkpoint = open_checkpoint(row["note"], checkpoints.keys, "the stored checkpoint")
    if (checkpoint.origin, checkpoint.size) != (row["origin"], row["size"]):
        raise click.ClickException("the stored checkpoint holds another one's note")
    return Signed(checkpoint, await checkpoints.full_note(row["note"]))
