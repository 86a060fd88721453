"""`claim-ledger audit prove` and `check`: receipts of claims."""

from pathlib import Path
from uuid import UUID

import click

from service.app.bootstrap import Service
from service.cli.audit.evidence_file import (
    finding,
    force_option,
    out_option,
    refuse_kind,
    signed_checkpoint,
    written,
)
from service.cli.audit.verify import note_in, opened, public_key_of
from service.cli.faults import one_line
from service.cli.options import json_option
from service.cli.target import Target, print_answer, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields, Findings
from service.core.errors import Refusal
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.export.format import EvidenceFault, encode, to_text
from service.evidence.export.receipt_verifier import check_receipt
from service.evidence.export.receipt_writer import (
    begins,
    find_claim,
    make_receipt,
    numbered_stream,
)
from service.evidence.note import NoteKey


@team_command
@click.argument("claim_id")
@out_option
@force_option
async def prove(target: Target, claim_id: str, out: Path, *, force: bool) -> Fields:
    """Write a claim's receipt: its events, each with the proof that it is in the signed log.

    Only events are trusted. A claim that the read models do not know, or show otherwise, is
    searched for in the whole log, which takes a while.
    """
    ledger, stream = await _found(target.service, claim_id)
    checkpoints = target.service.checkpoints(ledger)
    try:
        with written(out, force=force) as file:
            rows = await numbered_stream(checkpoints.ledger, stream)
            signed = await signed_checkpoint(checkpoints, covers=rows[-1]["position"])
            with progress("proving", signed.checkpoint.size) as advance:
                receipt = await make_receipt(checkpoints.ledger, claim_id, rows, signed, advance)
            file.write(encode(receipt))
    except (EvidenceFault, LedgerForked) as error:
        return finding(ledger, error)
    return {
        "ok": True,
        "file": str(out),
        "claim_id": claim_id,
        "ledger": ledger,
        "events": len(receipt.events),
        "size": signed.checkpoint.size,
        "origin": signed.checkpoint.origin,
    }


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--public-key",
    type=public_key_of,
    metavar="KEY",
    required=True,
    multiple=True,
    help="The key that signed; can be given more than once.",
)
@click.option(
    "--checkpoint",
    type=note_in,
    metavar="FILE",
    help="The signed checkpoint of this size that you have from elsewhere: it has to be the same.",
)
@json_option
def check(
    file: Path, public_key: tuple[NoteKey, ...], checkpoint: str | None, *, as_json: bool
) -> None:
    """Verify a receipt without an installation; exits with 1 if it does not hold."""
    refuse_kind(file, "export", "use `claim-ledger audit verify --export`")
    if checkpoint is not None:
        opened(checkpoint, public_key)
    print_answer(_checked(file, public_key, checkpoint), as_json=as_json)


def _checked(file: Path, keys: tuple[NoteKey, ...], kept: str | None) -> Fields:
    try:
        with one_line(OSError, before=f"{file}: "):
            proved = check_receipt(file, keys, kept)
    except EvidenceFault as fault:
        return Findings({"ok": False, "position": fault.position, "fault": str(fault)})
    return {
        "ok": True,
        "claim_id": proved.claim_id,
        "entity_id": proved.entity_id,
        "partner_id": proved.partner_id,
        "origin": proved.checkpoint.origin,
        "size": proved.checkpoint.size,
        "root": to_text(proved.checkpoint.root),
        "events": proved.events,
    }


async def _found(service: Service, claim_id: str) -> tuple[str, UUID]:
    """Return a claim's ledger and stream; raises Refusal (`claim_not_found`).

    The read model says where to look first, and the events confirm it.
    """
    for name, mode in service.modes.items():
        row = await mode.claim_list.by_id(claim_id)
        if row is not None and await begins(mode.ledger, row["stream_id"], claim_id):
            return name, row["stream_id"]
    for name, mode in service.modes.items():
        stream = await find_claim(mode.ledger, claim_id)
        if stream is not None:
            return name, stream
    raise Refusal("claim_not_found")
