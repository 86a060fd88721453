"""`claim-ledger audit export`."""

from pathlib import Path

import click

from service.cli.audit.evidence_file import (
    finding,
    force_option,
    out_option,
    signed_checkpoint,
    written,
)
from service.cli.audit.verify import note_in
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields
from service.core.errors import invalid
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.export.export_writer import ExportScope, write_export
from service.evidence.export.format import EvidenceFault
from service.evidence.note import NoteInvalid
from service.facts.caller import LEDGERS


@team_command
@out_option
@force_option
@click.option(
    "--ledger", type=click.Choice(LEDGERS), default="live", show_default=True, help="Which one."
)
@click.option(
    "--from",
    "first",
    metavar="POSITION",
    type=click.IntRange(min=1),
    default=1,
    help="Leave out the events before this position.",
)
@click.option("--entity", metavar="ID", help="Only what concerns this entity, each with a proof.")
@click.option(
    "--checkpoint",
    type=note_in,
    metavar="FILE",
    help="An older signed checkpoint: the export proves that the log continues it.",
)
async def export(
    target: Target,
    out: Path,
    ledger: str,
    first: int,
    entity: str | None,
    checkpoint: str | None,
    *,
    force: bool,
) -> Fields:
    """Write a ledger's events and a checkpoint to a file that can be verified offline."""
    scope = ExportScope(first, entity, None if checkpoint is None else _parsed(checkpoint, ledger))
    checkpoints = target.service.checkpoints(ledger)
    try:
        with written(out, force=force) as file:
            signed = await signed_checkpoint(checkpoints)
            if first > signed.checkpoint.size + 1:
                raise click.BadParameter(
                    f"the log ends at position {signed.checkpoint.size}", param_hint="--from"
                )
            with progress(f"exporting {ledger}", signed.checkpoint.size) as advance:
                events = await write_export(checkpoints.ledger, signed, scope, file, advance)
    except (EvidenceFault, LedgerForked) as error:
        return finding(ledger, error)
    return {
        "ok": True,
        "file": str(out),
        "ledger": ledger,
        "from": first,
        "events": events,
        "size": signed.checkpoint.size,
        "origin": signed.checkpoint.origin,
    }


def _parsed(note: str, ledger: str) -> Checkpoint:
    """Read an older checkpoint of this ledger; the verifier checks who signed it."""
    try:
        checkpoint = Checkpoint.of_note(note)
    except NoteInvalid as error:
        raise invalid("checkpoint", str(error)) from error
    if checkpoint.ledger != ledger:
        raise invalid("checkpoint", f"it is of {checkpoint.origin}; expected one of {ledger}")
    return checkpoint
