"""Events that a subscriber could not handle, and what follows them in their streams."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from service.core.clock import Clock
from service.ledger.database import Database
from service.ledger.decoding import StoredEvent
from service.ledger.ledger import Transaction
from service.ledger.projector import Insert, Table
from service.ledger.sql import queries

FOLLOWS: Final = "follows a parked event"

_SQL = queries("service.ledger.following")
_PARKED = Table(
    "parked",
    "read_model text, position bigint, stream_id uuid, error text, parked_at timestamptz",
)


class RetryRefused(Exception):
    """Parked streams cannot be retried now; str() tells an operator why."""


class Parked(NamedTuple):
    """A parked event. `read_model` is the subscriber's name; `error` quotes none of its data."""

    read_model: str
    position: int
    stream_id: UUID
    topic: str
    error: str
    parked_at: datetime


async def parked(database: Database) -> list[Parked]:
    """Return the parked events of a ledger, by subscriber and position."""
    return [Parked(*row) for row in await database.fetch(_SQL.parked_list)]


class Parking:
    """The parked events of one subscriber, inside its transactions."""

    def __init__(self, name: str, clock: Clock) -> None:
        """`clock` tells when an event was parked."""
        self._name = name
        self._clock = clock

    async def streams(self, transaction: Transaction, among: Iterable[UUID]) -> set[UUID]:
        """Return which of these streams have parked events."""
        rows = await transaction.fetch(_SQL.parked_streams, self._name, list(among))
        return {row["stream_id"] for row in rows}

    async def queue(self, transaction: Transaction, position: int | None) -> list[UUID]:
        """Return the parked streams, that of the oldest event first; or that of a position."""
        rows = await transaction.fetch(_SQL.parked_queue, self._name, position)
        return [row["stream_id"] for row in rows]

    async def hold(self, transaction: Transaction) -> None:
        """Keep the follower and rebuilds out until the transaction ends; raises RetryRefused.

        A rebuild leaves out what is parked: retried meanwhile, it would be missing afterwards.
        """
        row = await transaction.fetchrow(_SQL.retry_hold, transaction.ledger_name)
        if row is None or not row["is_free"]:
            raise RetryRefused(f"read models of {transaction.ledger_name} are being rebuilt")
        await transaction.fetch(_SQL.subscription_wait, self._name)

    async def events(
        self, transaction: Transaction, stream_id: UUID, events_max: int
    ) -> list[StoredEvent]:
        """Return the next parked events of a stream."""
        rows = await transaction.fetch(_SQL.parked_events, self._name, stream_id, events_max)
        return [StoredEvent(*row) for row in rows]

    async def park(
        self, transaction: Transaction, faults: Sequence[tuple[StoredEvent, str]]
    ) -> None:
        """Park events."""
        at = self._clock()
        await transaction.write(
            Insert(_PARKED, (self._name, event.position, event.stream_id, fault, at))
            for event, fault in faults
        )

    async def unpark(self, transaction: Transaction, events: Sequence[StoredEvent]) -> None:
        """Forget that events were parked."""
        await transaction.fetch(_SQL.unpark, self._name, [event.position for event in events])
