"""Recording in the log that every later event has a MAC of the newest key (decision 45)."""

from datetime import timedelta
from typing import Final

from service.facts.lineages import EventsBound
from service.ledger.binding import binding_of, boundary_stream
from service.ledger.codec import happened_at
from service.ledger.events import Cause
from service.ledger.ledger import Ledger, Transaction
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.writing import Append

QUIET: Final = timedelta(minutes=15)
"""For so long nothing may have been written without such a MAC: who did may still run."""

_SQL = queries("service.evidence")


class BindingRefused(Exception):
    """An event was written without a MAC a moment ago. `str()` tells an operator when."""


async def bind_events(ledger: Ledger, cause: Cause) -> bool:
    """Record that every later event has a MAC by the key that signs now, or by a later one.

    Return whether that is new. Raises BindingRefused where a process may still run that makes none,
    or signs by an earlier key: what it writes from now on would be set aside.
    """
    keys = await ledger.event_keys()

    async def attempt(transaction: Transaction) -> bool:
        find, *arguments = ledger.bound
        said = await transaction.fetch(find, *arguments)
        if binding_of(ledger.name, keys, said).oldest >= keys.signing:
            return False  # the newest one may not sign yet
        await _refuse_recent(ledger, transaction, keys.signing)
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


async def _refuse_recent(ledger: Ledger, transaction: Transaction, signing: int) -> None:
    """Raise BindingRefused where one of the newest events has no such MAC, and is that recent."""
    now = ledger.clock()
    for row in await transaction.fetch(_SQL.newest_unbound, bytes((signing,))):
        at = happened_at(row["state"])
        if at is None or now - at >= QUIET:
            continue
        if row["has_mac"]:
            raise BindingRefused(
                f"an event of {ledger.name} was written by an earlier event key at {at:%H:%M:%S} "
                "UTC: repeat this when none has been for a quarter of an hour"
            )
        raise BindingRefused(
            f"an event of {ledger.name} was written without a MAC at {at:%H:%M:%S} UTC: end "
            "every process of the release before, and repeat this after a quarter of an hour"
        )
