"""`claim-ledger audit replay`: show the state as of any moment, from events alone."""

from contextlib import ExitStack
from datetime import datetime
from typing import Final

import click

from service.cli.faults import one_line
from service.cli.instant import instant
from service.cli.options import WholeNumber, one_ledger_option
from service.cli.output import Spool
from service.cli.target import Target, team_command
from service.cli.terminal import progress
from service.cli.verdict import Fields, Findings, Fine
from service.core.counted import counted
from service.core.errors import Refusal
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.replay.comparison import compare, independent_claims
from service.evidence.replay.log_fault import LogFault
from service.evidence.replay.moment import moment_of
from service.evidence.replay.state import ReplayedState, replayed
from service.evidence.replay.wanted import Wanted
from service.facts.partners import partner_stream
from service.ledger.ledger import Ledger

_ACCOUNTS: Final = {"partners": "partners", "api_keys": "api_keys"}
_PARTNER_LEDGER: Final = {
    "claims": "claim_list",
    "entities": "entities",
    "connections": "connections",
    "onboardings": "onboardings",
    "connect_links": "connect_links",
    "documents": "claim_documents",
    "erased": "erasures",
}
"""The members of an answer and their tables."""

RULE: Final = (
    "every event up to the position of the last one that says it happened by then; clocks of "
    "processes differ, so one before that position can say a moment later"
)
"""What a time means: positions are the order, and no event is left out from between."""


@team_command
@click.option(
    "--at",
    type=instant,
    metavar="TIMESTAMP",
    help="As of the last event dated no later than this, such as `2026-03-01T10:15:30Z`.",
)
@click.option("--position", type=WholeNumber(0), help="As of a position of the log.")
@click.option("--claim", "claim_id", metavar="ID", help="Only this claim and what belongs to it.")
@click.option(
    "--entity", "entity_id", metavar="ID", help="Only this entity and what belongs to it."
)
@click.option("--partner", "partner_id", metavar="ID", help="Only what concerns this partner.")
@one_ledger_option
@click.option(
    "--independent",
    is_flag=True,
    help="Also fold the claims with independent software, and compare; needs a direct connection.",
)
async def replay(
    target: Target,
    at: datetime | None,
    position: int | None,
    ledger: str,
    *,
    independent: bool,
    **wanted: str | None,
) -> Fields:
    """Show the state as of any moment, replayed from numbered events, without erased data."""
    # Positions decide what had happened. A time only chooses the position: clocks may disagree.
    only = Wanted(**wanted)
    _check_usage(at, position, ledger, only, independent=independent)
    log = target.service.ledger(ledger)
    before, after = f"the ledger {ledger} cannot be replayed: ", "; `audit verify` shows more"
    with one_line(LogFault, LedgerForked, before=before, after=after), ExitStack() as bar:
        keys = target.service.settings.checkpoint_keys or ()
        published = await target.service.checkpoints(ledger).newest_published()
        moment = await moment_of(log, keys, at=at, position=position, published=published)
        answer: Fields = {"ledger": ledger} | moment._asdict() | ({"rule": RULE} if at else {})
        size = moment.position
        advance = bar.enter_context(progress(f"replaying {ledger}", size, unit="events"))
        replaying = replayed(log, moment.position, advance, keys, only, published=published)
        async with replaying as state:
            bar.close()
            answer["rests_on"] = state.footing.shown()
            tables = await _tables(state, ledger)
            await _refuse_unknown(target, tables, only)
            answer["counts"] = {of: len(spool) for of, spool in tables.items()}
            if independent:
                return await _compared(log, state, only, answer, tables)
    return answer | tables


def _check_usage(
    at: datetime | None, position: int | None, name: str, only: Wanted, *, independent: bool
) -> None:
    if at is not None and position is not None:
        raise click.UsageError("--at and --position exclude each other")
    given = [of for of, value in only._asdict().items() if value is not None]
    if len(given) > 1:
        raise click.UsageError("--claim, --entity and --partner exclude each other")
    if name == "accounts" and (independent or (given and given != ["partner_id"])):
        raise click.UsageError("the ledger of accounts has partners, and no claims or entities")


async def _tables(state: ReplayedState, name: str) -> dict[str, Spool]:
    spools: dict[str, Spool] = {}
    for of, table in (_ACCOUNTS if name == "accounts" else _PARTNER_LEDGER).items():
        spools[of] = Spool()
        async for row in state.rows(table):
            spools[of].add(row)
    return spools


async def _refuse_unknown(target: Target, tables: dict[str, Spool], only: Wanted) -> None:
    """Raise Refusal for an id that no event has; partners are looked up in `accounts`."""
    if only.claim_id is not None and not tables["claims"]:
        raise Refusal("claim_not_found")
    if only.entity_id is not None and not tables["entities"]:
        raise Refusal("entity_not_found")
    if only.partner_id is not None:
        async with target.service.accounts.transaction() as transaction:
            if not await transaction.exists(partner_stream(only.partner_id)):
                raise Refusal("partner_not_found")


async def _compared(
    ledger: Ledger, state: ReplayedState, only: Wanted, answer: Fields, tables: dict[str, Spool]
) -> Fields:
    """Return both claim lists compared; as Findings if they differ."""
    position: int = answer["position"]
    with progress("replaying independently", position, unit="events") as advance:
        theirs = await independent_claims(ledger.database, position, only, advance)
    found = await compare(state.rows("claim_list"), theirs)
    answer |= {"agrees": not found.differences, "independent_count": len(theirs)}
    answer |= tables | {"differences": found.differences, "differing": found.first}
    if found.differences:
        return Findings(answer, f"the replays differ in {counted(found.differences, 'claim')}")
    return Fine(answer, f"both replays have the same {counted(len(theirs), 'claim')}")
