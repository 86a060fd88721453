"""`claim-ledger audit set-aside` and `take-back`: events that got no number."""

import click

from service.cli.faults import one_line
from service.cli.options import WholeNumber, ledger_option, yes_option
from service.cli.target import Target, team_command
from service.cli.terminal import confirm
from service.cli.verdict import Fields
from service.evidence.set_aside import SetAside, TakeBackRefused, newest_set_aside, take_back
from service.facts.caller import LEDGERS


@team_command
@ledger_option
async def set_aside(target: Target, ledger: str | None) -> Fields:
    """Show the last hundred events of each ledger that were set aside, newest first.

    `is_ours` says whether this service wrote one: then it can be taken back while its stream has
    not gone on. `mac` says why it is not: `key retired` is one of this service, or of whoever got
    hold of an event key of before. `taken_back_at` is when it got its number after all.
    """
    return {
        "events": [
            {"ledger": name, **_row(event)}
            for name in ([ledger] if ledger else LEDGERS)
            for event in await newest_set_aside(target.service.ledger(name))
        ]
    }


@team_command
@click.argument("set_aside_id", type=WholeNumber(1, 2**63 - 1))
@click.option(
    "--ledger", type=click.Choice(LEDGERS), required=True, help="The ledger that it belongs to."
)
@click.option("--reason", required=True, help="Why, in the team's own words; recorded.")
@yes_option
async def _take_back(
    target: Target, set_aside_id: int, ledger: str, reason: str, *, yes: bool
) -> Fields:
    """Number an event of this service that was set aside.

    Its rows of read models are made again. Afterwards compare them (`projections verify`), because
    what came later in other streams may have been set aside as well.
    """
    if not reason.strip():
        raise click.BadParameter("expected a reason", param_hint="--reason")
    confirm(f"Number {set_aside_id} of {ledger}? It stays in the log permanently.", yes=yes)
    with one_line(TakeBackRefused):
        event = await take_back(target.service.ledger(ledger), set_aside_id, reason, target.cause)
    return {"ledger": ledger, **_row(event)}


def _row(event: SetAside) -> Fields:
    return event._asdict() | {"stream": None if event.stream is None else str(event.stream)}
