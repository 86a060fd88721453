"""What `claim-ledger audit prove --absent` does."""

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Final

import click

from service.cli.audit.countersigned import countersigned_checkpoint
from service.cli.audit.evidence_file import finding, signed_checkpoint, write_whole, written
from service.cli.audit.faults import archive_needed, key_needed
from service.cli.audit.given_checkpoint import checkpoint_at
from service.cli.options import WholeNumber
from service.cli.target import Target
from service.cli.terminal import progress
from service.cli.verdict import Fields, Findings
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.export.format import EvidenceFault
from service.evidence.proofs.streams import ClaimName, begins_at, prove_absence
from service.facts.caller import MODES
from service.ledger.following.status import read_only


async def absence(
    target: Target,
    name: ClaimName,
    at: str | None,
    out: Path,
    *,
    force: bool,
    is_countersigned: bool,
) -> Fields:
    """Write the proof that a claim did not exist at a checkpoint; say so if it did."""
    checkpoints = target.service.checkpoints(name.ledger)
    database = checkpoints.ledger.database
    try:
        if is_countersigned:
            signed = await countersigned_checkpoint(target.service.settings, checkpoints)
        elif at is None:
            signed = await signed_checkpoint(checkpoints)
        else:
            signed = await checkpoint_at(checkpoints, at)
        size = signed.checkpoint.size
        position = await begins_at(database, name.stream, size)
        if position is not None:
            answer = _fields(name, ok=False) | {"position": position, "size": size}
            return Findings(answer, f"the claim exists, since position {position}")
        if (refused := await read_only(checkpoints.ledger)) is not None:  # before the log is read
            message = f"nothing was proved: the proof's index is stored, and {refused}"
            raise click.ClickException(message)
        with written(out, force=force) as file, archive_needed(), key_needed():
            with progress("verifying and indexing", 2 * size) as advance:
                proof = await prove_absence(checkpoints, name, signed, advance)
            write_whole(file, proof)
    except (EvidenceFault, LedgerForked) as error:
        return finding(name.ledger, error)
    return {
        **_fields(name, ok=True),
        "file": str(out),
        "size": size,
        "origin": signed.checkpoint.origin,
    }


def _fields(name: ClaimName, *, ok: bool) -> Fields:
    return {"ok": ok, "exists": not ok, **name._asdict(), "stream": str(name.stream)}


def absence_options(command: Callable[..., Awaitable[Fields]]) -> Callable[..., Awaitable[Fields]]:
    """Add the options that name a claim; the command gets it as `absent`, None without them."""

    @wraps(command)
    async def run(
        target: Target,
        *,
        claim_id: str | None,
        absent: str | None,
        partner: str | None,
        entity: str | None,
        ledger: str,
        sandbox_epoch: int,
        **more: object,
    ) -> Fields:
        if absent is None and (claim_id is None or partner or entity):
            raise click.UsageError("expected CLAIM_ID, or --absent with --partner and --entity")
        if absent is not None and (claim_id is not None or not (partner and entity)):
            raise click.UsageError("--absent goes with --partner and --entity, without CLAIM_ID")
        if sandbox_epoch and ledger == "live":
            raise click.UsageError("--sandbox-epoch is for --ledger test")
        name = None
        if absent is not None and partner and entity:
            name = ClaimName(ledger, sandbox_epoch, partner, entity, absent)
        return await command(target, claim_id=claim_id, absent=name, **more)

    for option in _OPTIONS:
        option(run)
    return run


_OPTIONS: Final = (
    click.option(
        "--sandbox-epoch",
        type=WholeNumber(min=0),
        default=0,
        help="With --absent: how often the sandbox had been reset.",
    ),
    click.option(
        "--ledger",
        type=click.Choice(MODES),
        default="live",
        show_default=True,
        help="Where the claim is absent.",
    ),
    click.option(
        "--at",
        metavar="SIZE|TIME",
        help="With --absent: a checkpoint by its size, or the last one made by a time.",
    ),
    click.option("--entity", metavar="ID", help="With --absent: the claim's entity."),
    click.option("--partner", metavar="ID", help="With --absent: the claim's partner."),
    click.option(
        "--absent",
        metavar="PARTNER_CLAIM_ID",
        help="Prove that the partner has created no such claim for the entity.",
    ),
)
