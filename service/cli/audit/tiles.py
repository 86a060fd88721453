"""`claim-ledger audit tiles`."""

import click

from service.archive.port import ArchiveUnavailable, OpenArchive
from service.cli.options import ledger_option
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings, Fine
from service.core.counted import counted
from service.evidence.tiles.entries import EntriesUnsound
from service.evidence.tiles.writer import TilesWriter, tiles_state
from service.facts.caller import LEDGERS


@team_command
@ledger_option
async def tiles(target: Target, ledger: str | None) -> Fields:
    """Write each log's tiles up to its newest published checkpoint; exits with 1 if one fails.

    A worker does so where CLAIM_LEDGER_TILES_URL names a place. This says what keeps it from that.
    """
    place = target.service.tiles
    if place is None:
        raise click.ClickException("no place for tiles: CLAIM_LEDGER_TILES_URL is unset")
    names = [ledger] if ledger else LEDGERS
    rows = [await _row(target, name, place) for name in names]
    wrong = [row["ledger"] for row in rows if row["fault"]]
    if wrong:
        return Findings({"tiles": rows}, f"the tiles of {', '.join(wrong)}")
    return Fine({"tiles": rows}, f"the tiles of {counted(len(rows), 'log')} are written")


async def _row(target: Target, ledger: str, place: OpenArchive) -> Fields:
    checkpoints = target.service.checkpoints(ledger)
    writer, fault = TilesWriter(checkpoints, place), None
    try:
        while await writer.write():
            pass
    except (ArchiveUnavailable, EntriesUnsound) as error:
        fault = str(error)
    size, _ = await tiles_state(checkpoints.ledger.database)
    return {"ledger": ledger, "size": size, "fault": fault}
