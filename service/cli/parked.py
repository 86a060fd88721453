"""`claim-ledger projections retry`."""

from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.target import Findings, Target, team_command
from service.core.clock import timestamp
from service.core.errors import Refusal

if TYPE_CHECKING:
    from service.app.bootstrap import Service
    from service.ledger.following.catch_up import ParkingSubscriber
    from service.ledger.following.parking import Parked
    from service.ledger.ledger import Ledger

LEDGERS: Final = ("accounts", "live", "test")


@click.command()
@click.argument("name")
@click.option("--ledger", type=click.Choice(LEDGERS), help="In one ledger only.")
@click.option(
    "--position", type=click.IntRange(1), help="Only the stream of the event parked there."
)
@team_command
async def retry(
    target: Target, name: str, ledger: str | None, position: int | None
) -> dict[str, Any]:
    """Retry the parked streams of a read model or subscriber; ends with 1 if any remains parked."""
    from service.ledger.following.parking import RetryRefused, parked

    chosen = _chosen(target.service, name, ledger)
    applied, left = 0, []
    before = [
        one
        for where, _ in chosen
        for one in await parked(where.database)
        if one.read_model == name and position in {None, one.position}
    ]
    if position is not None and not before:
        raise Refusal("not_found", f"Nothing of {name} is parked at position {position}.")
    for where, projection in chosen:
        try:
            applied += await projection.retry(where, position)
        except RetryRefused as refused:
            raise click.ClickException(f"{refused}: try again later") from refused
        left += [
            _row(where.name, one) for one in await parked(where.database) if one.read_model == name
        ]
    answer = {"applied": applied, "parked": left}
    return Findings(answer) if left else answer


def _chosen(
    service: "Service", name: str, ledger: str | None
) -> "list[tuple[Ledger, ParkingSubscriber]]":
    chosen = [
        (one, projection)
        for one in service.ledgers
        for projection in service.parking[one.name]
        if projection.name == name and ledger in {None, one.name}
    ]
    if not chosen:
        known = {projection.name for every in service.parking.values() for projection in every}
        found = ", ".join(sorted(known))
        raise click.UsageError(f"Nothing named {name!r} parks events; there are {found}.")
    return chosen


def _row(ledger: str, one: "Parked") -> dict[str, Any]:
    return {
        "ledger": ledger,
        "position": one.position,
        "stream_id": str(one.stream_id),
        "topic": one.topic,
        "error": one.error,
        "parked_at": timestamp(one.parked_at),
    }
