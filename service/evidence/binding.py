"""Saying in the log that every later event has a MAC (decision 45)."""

from datetime import timedelta
from typing import Final

from service.facts.lineages import EventsBound
from service.ledger.binding import boundary_of, boundary_stream
from service.ledger.codec import happened_at
from service.ledger.events import Cause
from service.ledger.ledger import Ledger, Transaction
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.writing import Append

QUIET: Final = timedelta(minutes=15)
"""For so long nothing may have been written without a MAC: who did may still run."""

_SQL = queries("service.evidence")


class BindingRefused(Exception):
    """An event was written without a MAC a moment ago. `str()` tells an operator when."""


async def bind_events(ledger: Ledger, cause: Cause) -> bool:
    """Say that every later event of a ledger has a MAC; return whether that is new.

    Raises BindingRefused where a process may still run that makes none: what it writes from now on
    would be set aside.
    """
    keys = await ledger.event_keys()

    async def attempt(transaction: Transaction) -> bool:
        find, *arguments = ledger.bound
        if boundary_of(ledger.name, keys, await transaction.fetch(find, *arguments)) is not None:
            return False
        await _refuse_recent(ledger, transaction)
        stream = boundary_stream(ledger.name)
        row = await transaction.fetchrow(_SQL.last_version, stream)
        version: int = row["version"] if row is not None else 0
        await transaction.append(
            Append(stream, version, [EventsBound(event_key=keys.signing)], cause)
        )
        return True

    is_new = await ledger.decide(attempt, background=BACKGROUND_SECONDS)
    await Sequencer(ledger).number_committed()
    return is_new


async def _refuse_recent(ledger: Ledger, transaction: Transaction) -> None:
    """Raise BindingRefused where one of the newest events has no MAC and is of today's minutes."""
    now = ledger.clock()
    for row in await transaction.fetch(_SQL.newest_unbound):
        at = happened_at(row["state"])
        if at is not None and now - at < QUIET:
            raise BindingRefused(
                f"an event of {ledger.name} was written without a MAC at {at:%H:%M:%S} UTC: end "
                "every process of the release before, and repeat this after a quarter of an hour"
            )
