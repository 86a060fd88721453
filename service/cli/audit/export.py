"""`claim-ledger audit export`."""

from pathlib import Path

import click

from service.cli.audit.countersigned import countersigned_checkpoint, countersigned_option
from service.cli.audit.evidence_file import (
    finding,
    force_option,
    out_option,
    signed_checkpoint,
    unsigned_events,
    written,
)
from service.cli.audit.verify import note_in
from service.cli.options import WholeNumber, one_ledger_option
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields
from service.core.errors import invalid
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.export.export_writer import ExportScope, write_export
from service.evidence.export.format import EvidenceFault
from service.evidence.note import NoteInvalid


@team_command
@out_option
@force_option
@countersigned_option
@one_ledger_option
@click.option(
    "--from",
    "first",
    metavar="POSITION",
    type=WholeNumber(min=1),
    default=1,
    help="Leave out the events before this position.",
)
@click.option(
    "--entity", metavar="ID", help="Only the events that concern this entity, each with a proof."
)
@click.option(
    "--search",
    is_flag=True,
    help="Find the entity's events in the whole log, not by the read model `activity`.",
)
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
    search: bool,
    force: bool,
    is_countersigned: bool,
) -> Fields:
    """Write a ledger's events and a checkpoint to a file that can be verified offline.

    What concerns an entity is found by an index, the read model `activity`, and read from the log;
    `projections verify` compares the two, and --search does without it.
    """
    if search and entity is None:
        raise click.UsageError("--search is for an export with --entity")
    older = None if checkpoint is None else _parsed(checkpoint, ledger)
    scope = ExportScope(first, entity, older, search)
    checkpoints = target.service.checkpoints(ledger)
    try:
        with written(out, force=force) as file:
            signed = await (
                countersigned_checkpoint(target.service.settings, checkpoints)
                if is_countersigned
                else signed_checkpoint(checkpoints)
            )
            if first > signed.checkpoint.size + 1:
                raise click.BadParameter(
                    f"the log ends at position {signed.checkpoint.size}", param_hint="--from"
                )
            size = signed.checkpoint.size
            unsigned = await unsigned_events(checkpoints, size)
            with progress(f"exporting {ledger}", size, unit="events") as advance:
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
        "unsigned_events": unsigned,
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
