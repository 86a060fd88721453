"""`claim-ledger audit lineage`: continue after a restore or a failover that lost events."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from service.cli.audit.faults import key_needed
from service.cli.faults import one_line
from service.cli.options import ledger_option, yes_option
from service.cli.target import Target, team_command
from service.cli.terminal import confirm
from service.cli.verdict import Fields
from service.evidence.checkpoints.divergence import LineageRefused, begin_lineage, find_divergence
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.log_tree import LedgerForked
from service.facts.caller import LEDGERS


@team_command
@click.option("--reason", required=True, help="What happened, in the team's own words; recorded.")
@click.option(
    "--force",
    is_flag=True,
    help="Begin one even if nothing is lost; only once for the same reason.",
)
@yes_option
@ledger_option
async def lineage(
    target: Target, reason: str, ledger: str | None, *, force: bool, yes: bool
) -> Fields:
    """Continue after a restore that lost events: a new origin, linked to the last checkpoint.

    It is published and final: a database that still has the lost events is refused from then on.
    Run it only on the database that becomes production, never on a trial restore.
    """
    if not reason.strip():
        raise click.BadParameter("expected what happened", param_hint="--reason")
    ledgers = [ledger] if ledger else await _forked(target, force=force)
    if not ledgers:
        raise click.ClickException("nothing is lost in any ledger; --force begins lineages anyway")
    confirm(_question(target, ledgers), yes=yes)
    rows = [await _row(target, name, reason, force=force) for name in ledgers]
    settled = await target.service.sent_mail.settle() if "live" in ledgers else 0
    return {"lineages": rows, "mails_settled": settled}


def _question(target: Target, ledgers: list[str]) -> str:
    place = target.service.settings.archive_url or "no archive: CLAIM_LEDGER_ARCHIVE_URL is unset"
    return (
        f"Begin a new lineage of {', '.join(ledgers)}, published for good to {place}? "
        "No other database can go on with what is there then: say no if this one is on trial."
    )


async def _forked(target: Target, *, force: bool) -> list[str]:
    if force:
        return list(LEDGERS)
    found: list[str] = []
    for name in LEDGERS:
        with _refusals(name), key_needed():
            divergence = await find_divergence(target.service.checkpoints(name))
        if divergence is not None and divergence.is_forked:
            found.append(name)
    return found


async def _row(target: Target, ledger: str, reason: str, *, force: bool) -> Fields:
    checkpoints = target.service.checkpoints(ledger)
    with _refusals(ledger), key_needed():
        made = await begin_lineage(checkpoints, reason, target.cause, force=force)
    begun = (await lineages(target.service.ledger(ledger)))[-1]
    previous = (begun.previous or "").split("\n")
    return {
        "ledger": ledger,
        "origin": made.checkpoint.origin,
        "size": made.checkpoint.size,
        "shared_size": begun.shared_size,
        "previous_origin": previous[0],
        "previous_size": int(previous[1]),
        "set_aside": await checkpoints.published.sizes(previous[0], behind=begun.shared_size or 0),
    }


@contextmanager
def _refusals(ledger: str) -> Generator[None]:
    after = "; a new lineage cannot mend that: `audit verify` says where"
    with (
        one_line(LineageRefused, before=f"{ledger}: "),
        one_line(LedgerForked, before=f"{ledger}: ", after=after),
    ):
        yield
