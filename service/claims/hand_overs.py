"""From the log to processing: a subscriber queues hand-overs, a loop makes them.

At least once, and each by itself: with its own attempts, waits and outcome. One that keeps failing
is set aside, as events are parked, with what follows it in its claim's stream: `projections status`
shows it, and `projections retry processing` queues it again. In a stream, one follows another.

An attempt is counted, with its wait, before anything leaves. Hand-overs that have not been tried
leave together; one that was tried leaves alone, so that a message which ends the process with it
uses up no other's attempts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from service.claims.processing import Processing
from service.facts.claims import FirstMessagePosted
from service.ledger.database import Row
from service.ledger.decoding import PAGE_BYTES_MAX, StoredEvent, Unread
from service.ledger.encryption import KeyUnknown
from service.ledger.events import Recorded
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.parking import FOLLOWS, NOT_OURS
from service.ledger.following.runner import EVENTS_MAX, HANDLE_SECONDS_MAX
from service.ledger.ledger import Ledger, Transaction
from service.ledger.projector import arrays
from service.ledger.queue_runner import Hopeless
from service.ledger.sql import queries

AT_ONCE_MAX: Final = 64
"""Hand-overs that leave together; so many may come twice when a process is cut off."""
HAND_OVER_SECONDS_MAX: Final = 20.0
LEASE_SECONDS: Final = 60.0
"""After this, hand-overs of a process that was cut off are due again."""

_SQL = queries("service.claims")

log = structlog.get_logger()


class HandOverQueue:
    """Subscriber of the live ledger: queues the hand-over of each first message."""

    name = "processing"
    events_max = EVENTS_MAX
    topics = (FirstMessagePosted,)
    reads_personal = False
    takes_unknown = False

    async def handle(self, transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Queue what to hand over, in the transaction that advances the checkpoint."""
        notes = [(one.position, one.stream_id, one.meta.at) for one in events]
        await transaction.fetch(_SQL.hand_overs_note, *arrays(notes))


class HandOver(NamedTuple):
    """A message to hand over; without it, `fault`, or none where a master key is missing."""

    position: int
    attempts: int
    recorded: Recorded | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class HandOvers:
    """The queue of hand-overs, and how one is made.

    `queue` parks those of the HandOverQueue that are set aside.
    """

    live: Ledger
    queue: ParkingSubscriber
    processing: Processing

    lease_seconds = LEASE_SECONDS

    @property
    def seconds_max(self) -> float:
        """How long processing may take for a message."""
        return HAND_OVER_SECONDS_MAX

    async def take(self, now: datetime, until: datetime) -> Sequence[HandOver]:
        """Take the next hand-overs, and read their messages."""
        if not await self.live.database.background.fetchrow(_SQL.hand_overs_due, now):
            return []
        rows = await self.live.database.background.fetch(
            _SQL.hand_overs_take, now, AT_ONCE_MAX, PAGE_BYTES_MAX, until
        )
        return await self._read(sorted(rows, key=lambda row: row["position"]))

    async def _read(self, rows: Sequence[Row]) -> list[HandOver]:
        """Return the messages, those that cannot be read with their faults."""
        attempts = {row["position"]: row["attempts"] for row in rows}
        unread = list[Unread]()
        stored = [StoredEvent(*tuple(row)[:-1]) for row in rows]
        try:
            binding = await self.live.binding()
            ours = binding.ours(stored)
            if len(ours) < len(stored) and await self.live.has_other_keys(binding.keys):
                ours = (await self.live.binding()).ours(stored)  # of a key that was not known yet
            read = await self.live.decode(ours, unread=unread)
        except KeyUnknown:  # of one of them, which waits until the ring is complete, or mended
            if len(rows) == 1:
                return [HandOver(*next(iter(attempts.items())))]
            return [one for row in rows for one in await self._read([row])]
        faults = dict.fromkeys(attempts.keys() - {one.position for one in ours}, NOT_OURS)
        faults |= {one.position: one.fault for one in unread}
        return [
            *(HandOver(one.position, attempts[one.position], one) for one in read),
            *(HandOver(one, attempts[one], fault=fault) for one, fault in faults.items()),
        ]

    async def attempt(self, item: HandOver) -> None:
        """Hand a message over."""
        if item.fault is not None:
            raise Hopeless(item.fault)
        if item.recorded is None:
            raise KeyUnknown("of the message")
        if not isinstance(item.recorded.event, FirstMessagePosted):  # queued for a log that was cut
            raise Hopeless("no first message")
        await self.processing.hand_over(item.recorded.event)

    def log_failure(self, item: HandOver, error_type: str) -> None:
        """Log an attempt that failed."""
        event = item.recorded.event if item.recorded is not None else None
        log.warning(
            "hand-over failed",
            message_id=event.message_id if isinstance(event, FirstMessagePosted) else None,
            attempts=item.attempts,
            error_type=error_type,
        )

    async def done(self, items: Sequence[HandOver]) -> None:
        """Remove what was handed over."""
        positions = [one.position for one in items]
        await self.live.database.background.fetch(_SQL.hand_overs_done, positions)

    async def wait(self, item: HandOver, later: datetime, _fault: str) -> None:
        """Make it due again later."""
        await self.live.database.background.fetch(_SQL.hand_overs_wait, item.position, later)

    async def set_aside(self, item: HandOver, fault: str) -> None:
        """Park a message, and what follows it in its stream."""
        async with self.live.transaction(background=HANDLE_SECONDS_MAX) as transaction:
            await self.queue.keep_out(transaction)  # it could queue what follows meanwhile
            rows = await transaction.fetch(_SQL.hand_overs_remove, item.position)
            await self.queue.park(
                transaction,
                [
                    (row["position"], row["stream_id"], fault if row["is_first"] else FOLLOWS)
                    for row in rows
                ],
            )
