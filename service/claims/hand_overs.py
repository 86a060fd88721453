"""From the log to processing: a subscriber queues hand-overs, a loop makes them.

At least once, and each by itself: with its own attempts, waits and outcome. One that keeps failing
is set aside, as events are parked, with what follows it in its claim's stream: `projections status`
shows it, and `projections retry processing` queues it again. In a stream, one follows another.

An attempt is counted, with its wait, before anything leaves. Hand-overs that have not been tried
leave together; one that was tried leaves alone, so that a message which ends the process with it
uses up no other's attempts.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from service.claims.processing import Processing
from service.facts.claims import FirstMessagePosted
from service.ledger.database import LedgerUnavailable
from service.ledger.decoding import PAGE_BYTES_MAX, StoredEvent, Unread
from service.ledger.effects import hold
from service.ledger.encryption import KeyUnknown
from service.ledger.events import Recorded
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.parking import FOLLOWS, NOT_OURS
from service.ledger.following.runner import EVENTS_MAX, HANDLE_SECONDS_MAX
from service.ledger.ledger import Ledger
from service.ledger.projector import arrays
from service.ledger.queue_runner import Hopeless
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

AT_ONCE_MAX: Final = 64
"""Hand-overs that leave together; so many may come twice when a process is cut off."""
HAND_OVER_SECONDS_MAX: Final = 20.0
HELD_SECONDS_MAX: Final = HAND_OVER_SECONDS_MAX + 5.0
"""How long hand-overs are held that leave together: less than an erasure waits for them."""
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
    """A message to hand over, as it is stored, and as it is read while it is held.

    What cannot be read has its `fault`, or none where a master key is missing.
    """

    position: int
    attempts: int
    stored: StoredEvent
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
        """Take the next hand-overs."""
        if not await self.live.database.background.fetchrow(_SQL.hand_overs_due, now):
            return []
        rows = await self.live.database.background.fetch(
            _SQL.hand_overs_take, now, AT_ONCE_MAX, PAGE_BYTES_MAX, until
        )
        taken = [
            HandOver(row["position"], row["attempts"], StoredEvent(*tuple(row)[:-1]))
            for row in rows
        ]
        return sorted(taken, key=lambda one: one.position)

    @asynccontextmanager
    async def held(self, items: Sequence[HandOver]) -> AsyncGenerator[Sequence[HandOver], None]:
        """Have erasures of these claims wait until all are handed over, and read the messages."""
        if not items:
            yield ()
            return
        stored = [one.stored for one in items]
        ours = {one.position for one in await self.live.ours(stored)}
        have_left = False
        try:
            async with self.live.transaction(background=HELD_SECONDS_MAX) as transaction:
                held = await hold(transaction, {one.stream_id for one in stored})
                ready = [one for one in items if one.stored.stream_id in held]
                yield await self._read(transaction, ready, ours)
                have_left = True
        except LedgerUnavailable:  # with a lost connection, the locks are gone
            if not have_left:
                raise

    async def _read(
        self, transaction: Transaction, items: Sequence[HandOver], ours: Collection[int]
    ) -> list[HandOver]:
        """Return the messages, those that cannot be read with their faults."""
        stored, unread = [one.stored for one in items if one.position in ours], list[Unread]()
        try:
            read = await transaction.decode(stored, unread=unread)
        except KeyUnknown:  # of one of them, which waits until the ring is complete, or mended
            if len(items) == 1:
                return list(items)
            return [one for item in items for one in await self._read(transaction, [item], ours)]
        faults = {one.position: NOT_OURS for one in items if one.position not in ours}
        faults |= {one.position: one.fault for one in unread}
        messages = {one.position: one for one in read}
        return [
            one._replace(recorded=messages.get(one.position), fault=faults.get(one.position))
            for one in items
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
