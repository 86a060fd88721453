"""`claim-ledger projections retry`."""

from typing import Final

import click

from service.app.bootstrap import Service
from service.claims.hand_overs import HandOverQueue
from service.cli.faults import one_line
from service.cli.options import WholeNumber, ledger_option
from service.cli.projections.status import parked_rows
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings, Fine
from service.core.counted import counted
from service.core.errors import Refusal
from service.documents.checks import DocumentCheckQueue
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.parking import RetryRefused
from service.ledger.ledger import Ledger
from service.mail.queueing import MailSubscriber

_QUEUES: Final = {HandOverQueue.name, DocumentCheckQueue.name, MailSubscriber.name}
"""Subscribers that queue what others do later."""


@team_command
@click.argument("name")
@ledger_option
@click.option("--position", type=WholeNumber(1), help="Only the stream of the event parked there.")
async def retry(target: Target, name: str, ledger: str | None, position: int | None) -> Fields:
    """Retry the parked streams of a read model or subscriber; exits with 1 if any remains.

    A retry of `mail`, `processing` or `documents` queues again what the worker then does: it parks
    again what fails again (`projections status`).
    """
    chosen = _chosen(target.service, name, ledger)
    before = [row for where, _ in chosen for row in await _parked(where, name)]
    if position is not None and not any(row["position"] == position for row in before):
        raise Refusal("not_found", f"Nothing of {name} is parked at position {position}.")
    applied, left = 0, []
    for where, subscriber in chosen:
        with one_line(RetryRefused, after=": try again later"):
            applied += await subscriber.retry(where, position)
        left += await _parked(where, name)
    answer = {"applied": applied, "parked": left}
    if left:
        return Findings(answer, f"{counted(len(left), 'event')} of {name} still parked")
    done = "queued again" if name in _QUEUES else "applied"
    return Fine(answer, f"{counted(applied, 'event')} of {name} {done}, nothing is parked")


def _chosen(
    service: Service, name: str, ledger: str | None
) -> list[tuple[Ledger, ParkingSubscriber]]:
    chosen = [
        (where, subscriber)
        for where in service.ledgers
        for subscriber in service.parking[where.name]
        if subscriber.name == name and ledger in {None, where.name}
    ]
    if not chosen:
        known = {
            subscriber.name
            for where, every in service.parking.items()
            for subscriber in every
            if ledger in {None, where}
        }
        place = f" in {ledger}" if ledger else ""
        found = ", ".join(sorted(known))
        raise click.UsageError(f"Nothing named {name!r} parks events{place}; there are {found}.")
    return chosen


async def _parked(ledger: Ledger, name: str) -> list[Fields]:
    return [row for row in await parked_rows(ledger) if row.pop("read_model") == name]
