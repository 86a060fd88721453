"""The queues of endpoints in the ledger of their mode: how far each came, and what is open.

The facts about endpoints are in the ledger of accounts; a subscriber of it keeps the queues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projections.partner_events.reader import PartnerEventsReader
from service.core.clock import Clock
from service.core.errors import Refusal, invalid
from service.events.wire import TEST_EVENT
from service.facts.caller import Mode
from service.facts.endpoints import (
    EndpointAdded,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRemoved,
)
from service.ledger.database import Database, Row
from service.ledger.events import Recorded
from service.ledger.sql import Sql, queries
from service.ledger.transaction import Transaction
from service.webhooks.waits import ENDPOINT_WAIT_SECONDS_MAX

TESTS_MAX: Final = 3
"""Test events that may wait for one endpoint."""
TESTS_AN_HOUR_MAX: Final = 20
LISTED_MAX: Final = 50
NEXT_MAX: Final = 200
"""Events behind an endpoint's queue that are looked at, to say whether any of them is for it."""

_SQL = queries("service.webhooks")


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of both modes."""

    databases: Mapping[Mode, Database]
    clock: Clock

    async def end_of(self, mode: Mode) -> int:
        """Return the last position of a mode's log."""
        row = await self.databases[mode].reads.fetchrow(_SQL.log_end)
        return row["size"] if row else 0

    async def states(self, mode: Mode, endpoint_ids: Sequence[str]) -> dict[str, Row]:
        """Return how each endpoint stands: position, open deliveries, failures, what follows."""
        reads, now = self.databases[mode].reads, self.clock()
        rows = await reads.fetch(_SQL.states, list(endpoint_ids), now, NEXT_MAX)
        return {row["endpoint_id"]: row for row in rows}

    async def open(self, mode: Mode, endpoint_id: str) -> list[Row]:
        """Return the first deliveries that are still to be made."""
        return await self.databases[mode].reads.fetch(_SQL.open, endpoint_id, LISTED_MAX)

    async def aside(self, mode: Mode, endpoint_id: str) -> list[Row]:
        """Return the first claims that were set aside, each with how many events it has."""
        return await self.databases[mode].reads.fetch(_SQL.aside, endpoint_id, LISTED_MAX)

    async def about(
        self, mode: Mode, partner_id: str, positions: Sequence[int]
    ) -> dict[int, str | None]:
        """Return what the partner's events at some positions are about, as their lists name it."""
        reader = PartnerEventsReader(self.databases[mode])
        return await reader.about(partner_id, positions)

    async def release(self, mode: Mode, endpoint_id: str, position: int) -> None:
        """Deliver what was set aside of an event's claim; nothing where a form is sent twice."""
        writes = self.databases[mode].writes
        rest = ENDPOINT_WAIT_SECONDS_MAX
        await writes.fetch(_SQL.release, endpoint_id, position, self.clock(), rest)

    async def delivered(
        self,
        mode: Mode,
        endpoint_id: str,
        before: tuple[datetime, int] | tuple[None, None] = (None, None),
    ) -> list[Row]:
        """Return the last deliveries that were made, before one that its time and position name."""
        return await self.databases[mode].reads.fetch(
            _SQL.delivered, endpoint_id, *before, LISTED_MAX
        )

    async def replay(self, mode: Mode, endpoint_id: str, position: int) -> None:
        """Deliver again what an endpoint got from a position on, which lies behind it."""
        row = await self.databases[mode].writes.fetchrow(_SQL.rewind, endpoint_id, position - 1)
        if row is None:
            raise invalid("position", "expected one that was delivered, or is about to be")

    async def test(self, mode: Mode, endpoint_id: str) -> None:
        """Queue a test event; refuses with `limit_reached` after some that wait, or were sent."""
        row = await self.databases[mode].writes.fetchrow(
            _SQL.test, endpoint_id, self.clock(), TEST_EVENT, TESTS_MAX, TESTS_AN_HOUR_MAX
        )
        if row is None:
            message = (
                f"An active endpoint gets {TESTS_MAX} test events at a time, and"
                f" {TESTS_AN_HOUR_MAX} an hour. Wait for a while."
            )
            raise Refusal("limit_reached", message)


class EndpointQueues:
    """Subscriber of the ledger of accounts: keeps the queues of endpoints in the ledgers of modes.

    Each event is handled by statements that change nothing the second time.
    """

    name = "webhooks"
    events_max = 20
    topics = (EndpointAdded, EndpointDisabled, EndpointEnabled, EndpointRemoved)
    reads_personal = False
    takes_unknown = False

    def __init__(self, databases: Mapping[Mode, Database], clock: Clock) -> None:
        """`databases` are those of the modes' ledgers."""
        self._databases, self._clock = databases, clock

    async def handle(self, _transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Begin, stop, continue or end the queues of endpoints."""
        for recorded in events:
            match recorded.event:
                case EndpointAdded() as event:
                    row = (event.endpoint_id, event.partner_id, event.after)
                    await self._write(_SQL.begin, *row, mode=event.mode)
                case EndpointDisabled(endpoint_id=endpoint_id):
                    await self._write(_SQL.stop, endpoint_id)
                case EndpointEnabled(endpoint_id=endpoint_id):
                    now, rest = self._clock(), ENDPOINT_WAIT_SECONDS_MAX
                    await self._write(_SQL.resume, endpoint_id, now, rest)
                case EndpointRemoved(endpoint_id=endpoint_id):
                    await self._write(_SQL.end, endpoint_id)
                    await self._write(_SQL.end_deliveries, endpoint_id)
                case _:
                    pass

    async def _write(self, statement: Sql, *args: object, mode: str | None = None) -> None:
        """Run a statement in the ledger of a mode; None: in both, of which one has the queue."""
        for name, database in self._databases.items():
            if mode in (None, name):
                await database.background.fetch(statement, *args)
