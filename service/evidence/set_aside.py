"""Events that were set aside, and taking back those that this service wrote (decision 45)."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from service.core.ids import stream_id
from service.facts.lineages import EventTakenBack
from service.ledger.binding import Binding
from service.ledger.database import Row
from service.ledger.events import Cause
from service.ledger.ledger import Ledger, Transaction
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.writing import Append

LISTED_MAX: Final = 100

_SQL = queries("service.evidence")


class TakeBackRefused(Exception):
    """The event stays set aside. `str()` tells an operator why."""


class SetAside(NamedTuple):
    """An event that was set aside. `is_ours`: this service wrote it.

    The stream and the fields after it are None if only the queue named the event.
    """

    set_aside_id: int
    set_aside_at: datetime
    reason: str
    append_id: int
    stream: UUID | None
    version: int | None
    topic: str | None
    is_ours: bool


async def newest_set_aside(ledger: Ledger) -> list[SetAside]:
    """Return the events that were set aside last, newest first."""
    binding = await ledger.binding()
    rows = await ledger.database.reads.fetch(_SQL.set_aside, None, LISTED_MAX)
    return [_set_aside(row, binding) for row in rows]


async def take_back(ledger: Ledger, set_aside_id: int, reason: str, cause: Cause) -> SetAside:
    """Write an event again, as it was, if its stream has not gone on; return it numbered.

    Raises TakeBackRefused.
    """
    binding = await ledger.binding()

    async def attempt(transaction: Transaction) -> SetAside:
        rows = await transaction.fetch(_SQL.set_aside, set_aside_id, 1)
        if not rows:
            raise TakeBackRefused(f"{ledger.name} has set nothing aside under {set_aside_id}")
        event = _set_aside(rows[0], binding)
        if event.stream is None or event.version is None or not event.is_ours:
            raise TakeBackRefused(
                "this service did not write it: its MAC does not hold, or its key was retired"
            )
        await transaction.lock(event.stream)
        last = await transaction.fetchrow(_SQL.last_version, event.stream)
        due = 1 + (0 if last is None else last["version"])
        if event.version != due:
            raise TakeBackRefused(
                f"it is version {event.version} of its stream, where version {due} is due: whoever "
                "did it has to do it again"
            )
        await transaction.fetch(_SQL.take_back, set_aside_id)
        taken = EventTakenBack(
            set_aside_number=set_aside_id,
            stream=str(event.stream),
            stream_version=event.version,
            event_topic=event.topic or "",
            reason=reason,
        )
        place = stream_id("taken-back", ledger.name, str(set_aside_id))
        await transaction.append(Append(place, 0, [taken], cause))
        return event

    taken = await ledger.decide(attempt, background=BACKGROUND_SECONDS)
    await Sequencer(ledger).number_committed()
    return taken


def _set_aside(row: Row, binding: Binding) -> SetAside:
    *columns, digest, mac = row
    is_ours = mac is not None and binding.keys.is_ours(digest, mac, oldest=binding.oldest)
    return SetAside(*columns, is_ours=is_ours)
