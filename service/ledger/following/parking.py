"""Events that a subscriber could not handle, and the later events of their streams."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from service.ledger.database import Database
from service.ledger.projector import Table
from service.ledger.sql import queries

FOLLOWS: Final = "follows a parked event"
NOT_OURS: Final = "this service did not write it"

_SQL = queries("service.ledger.following")
PARKED = Table(
    "parked",
    "read_model text, position bigint, stream_id uuid, error text, parked_at timestamptz",
)


class RetryRefused(Exception):
    """Parked streams cannot be retried now; `str()` tells an operator why."""


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
    return [Parked(*row) for row in await database.reads.fetch(_SQL.parked_list)]
