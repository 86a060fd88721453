"""Recording in the log that every later event has a MAC of the newest key (decision 45)."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from service.evidence.checkpoints.signing import CLOCKS_DIFFER_MAX
from service.facts.lineages import EventsBound
from service.ledger.binding import Binding, binding_of, boundary_stream
from service.ledger.codec import happened_at
from service.ledger.database import Row
from service.ledger.events import Cause
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import Append

QUIET: Final = timedelta(minutes=15)
"""For so long nothing may have been written without such a MAC: who did may still run."""

ENDED_SECONDS_MAX: Final = 30.0
"""How long transactions that were open are waited for; the service's own writes take moments."""
_POLL_SECONDS: Final = 0.1

_SQL = queries("service.evidence")


class BindingRefused(Exception):
    """Events without such a MAC were written a moment ago, or still may be.

    `str()` tells an operator of them.
    """


async def bind_events(ledger: Ledger, cause: Cause) -> bool:
    """Record that every later event has a MAC by the key that signs now, or by a later one.

    Return whether that is new, once all events are numbered whose transactions were open when it
    was recorded.

    Raises BindingRefused where a process may still run that makes none, or signs by an earlier key:
    what it writes from now on would be set aside. And where such a transaction stays open.
    """
    keys = await ledger.event_keys()

    async def attempt(transaction: Transaction) -> datetime | None:
        find, *arguments = ledger.bound
        said = await transaction.fetch(find, *arguments)
        binding = binding_of(ledger.name, keys, said)
        if binding.oldest >= keys.signing:  # the newest one may not sign yet
            return _recorded_by(binding, said)
        await _refuse_recent(ledger, transaction, keys.signing)
        stream = boundary_stream(ledger.name)
        row = await transaction.fetchrow(_SQL.last_version, stream)
        version: int = row["version"] if row is not None else 0
        await transaction.append(
            Append(stream, version, [EventsBound(event_key=keys.signing)], cause)
        )
        return None

    recorded_before = await ledger.decide(attempt, background=BACKGROUND_SECONDS)
    await Sequencer(ledger).number_committed()
    await _await_open(ledger, recorded_before)
    await Sequencer(ledger).number_committed()
    return recorded_before is None


def _recorded_by(binding: Binding, said: Sequence[Row]) -> datetime:
    """Return by when the newest boundary was recorded, by PostgreSQL's clock.

    Its event is dated by the clock of another process. One since the start is older than any.
    """
    newest = binding.boundaries[-1].position
    found = (happened_at(row["state"]) for row in said if row["position"] == newest)
    return (next(found, None) or datetime.min.replace(tzinfo=UTC)) + CLOCKS_DIFFER_MAX


async def _await_open(ledger: Ledger, began_by: datetime | None) -> None:
    """Wait until the transactions have ended that began by then, of those that are open now.

    What they have written has no number yet, so it will be set aside if an earlier key signed it.
    Raises BindingRefused where one stays open. `began_by`: None stands for now.
    """
    clock, pool = asyncio.get_running_loop().time, ledger.database.background
    ends_at = clock() + ENDED_SECONDS_MAX
    found = await pool.fetch(_SQL.open_transactions, ledger.name, began_by)
    waited = {row["xid"]: row for row in found}
    while waited:
        if clock() > ends_at:
            row = next(iter(waited.values()))
            raise BindingRefused(
                f"{ledger.name} has recorded that later events need a MAC of the newest key, but "
                f"{row['holder']} of {row['login']} is open, and may still commit others: end it, "
                "and repeat this"
            )
        await asyncio.sleep(_POLL_SECONDS)
        found = await pool.fetch(_SQL.open_transactions, ledger.name, began_by)
        still = {row["xid"] for row in found}
        waited = {xid: row for xid, row in waited.items() if xid in still}


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
