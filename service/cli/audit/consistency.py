"""`claim-ledger audit consistency`: that there is one log."""

from pathlib import Path

import click

from service.cli.audit.evidence_file import finding, force_option, out_option, write_whole, written
from service.cli.audit.given_checkpoint import given_checkpoint
from service.cli.options import one_ledger_option
from service.cli.target import Target, team_command
from service.cli.verdict import Fields
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.export.format import EvidenceFault
from service.evidence.proofs.consistency import make_consistency


@team_command
@click.argument("old")
@click.argument("new")
@out_option
@force_option
@one_ledger_option
async def consistency(
    target: Target, old: str, new: str, out: Path, ledger: str, *, force: bool
) -> Fields:
    """Write the proof that the log of checkpoint NEW begins with all events of checkpoint OLD.

    Each is a size at which a checkpoint was signed, or the file of a signed checkpoint that
    somebody has. `audit check` verifies the file offline. A checkpoint that was signed of another
    log has no such proof: then the exit code is 1.
    """
    checkpoints = target.service.checkpoints(ledger)
    try:
        with written(out, force=force) as file:
            older = await given_checkpoint(checkpoints, old, "OLD")
            newer = await given_checkpoint(checkpoints, new, "NEW")
            proof = await make_consistency(checkpoints.ledger, older, newer, checkpoints.keys)
            write_whole(file, proof)
    except (EvidenceFault, LedgerForked) as error:
        return finding(ledger, error)
    return {
        "ok": True,
        "file": str(out),
        "ledger": ledger,
        "older_size": older.checkpoint.size,
        "older_origin": older.checkpoint.origin,
        "size": newer.checkpoint.size,
        "origin": newer.checkpoint.origin,
    }
