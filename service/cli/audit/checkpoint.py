"""`claim-ledger audit checkpoint`."""

import base64

import click

from service.cli.audit.faults import archive_needed, key_needed
from service.cli.checkpoint_dates import warn_ahead
from service.cli.options import ledger_option
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields, Findings, Fine, listed
from service.core.counted import counted
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.verify.ledger_verifier import size_of
from service.facts.caller import LEDGERS


@team_command
@click.option(
    "--begin-publication",
    "begin_archive",
    is_flag=True,
    help="Publish what is stored to an archive that holds none of it, such as a new one.",
)
@ledger_option
async def checkpoint(target: Target, ledger: str | None, *, begin_archive: bool) -> Fields:
    """Sign and publish a checkpoint of each log; exits with 1 if it lost published events.

    If checkpoints are stored and the archive holds none of them, it is the wrong one, or was lost,
    or is new: nothing is signed unless --begin-publication says that it is new. Where no worker has
    verified the whole log within the time that is set for it, this does so first.
    """
    names = [ledger] if ledger else LEDGERS
    with archive_needed():
        rows = [await _row(target, name, begin_archive=begin_archive) for name in names]
    answer = {"checkpoints": rows}
    faults = [f"{row['ledger']}: {row['fault']}" for row in rows if row["fault"]]
    if faults:
        return Findings(answer, listed(faults))
    return Fine(answer, f"{counted(len(rows), 'ledger')} signed as they are now")


async def _row(target: Target, ledger: str, *, begin_archive: bool) -> Fields:
    names = ("ledger", "origin", "size", "root", "is_new", "published", "fault")
    row: Fields = dict.fromkeys(names) | {"ledger": ledger}
    checkpoints = target.service.checkpoints(ledger)
    await warn_ahead(checkpoints)
    try:
        with progress(f"verifying {ledger}", await size_of(checkpoints.ledger.database)) as advance:
            await target.service.slices(ledger).whole(advance)
        with key_needed():
            made = await checkpoints.make(begin_archive=begin_archive)
    except LedgerForked as error:
        return row | {"is_new": False, "published": False, "fault": str(error)}
    return row | {
        "origin": made.checkpoint.origin,
        "size": made.checkpoint.size,
        "root": base64.b64encode(made.checkpoint.root).decode(),
        "is_new": made.is_new,
        "published": made.is_published,
    }
