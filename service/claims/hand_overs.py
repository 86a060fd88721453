"""From the log to processing: a subscriber queues hand-overs, a loop makes them.

At least once, and each by itself: with its own attempts, waits and outcome. One that keeps failing
is set aside, as events are parked, with what follows it in its claim's stream: `projections status`
shows it, and `projections retry processing` queues it again. In a stream, one follows another.

An attempt is counted, with its wait, before anything leaves. Hand-overs that have not been tried
leave together; one that was tried leaves alone, so that a message which ends the process with it
uses up no other's attempts.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

import structlog

from service.claims.processing import Processing
from service.core.clock import Clock
from service.core.loops import repeated
from service.core.retries import ATTEMPTS_MAX, wait_after
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
from service.ledger.sql import queries

AT_ONCE_MAX: Final = 32
"""Hand-overs that leave together; so many may come twice when a process is cut off."""
HAND_OVER_SECONDS_MAX: Final = 20.0
LEASE_SECONDS: Final = 60.0
"""After this, hand-overs of a process that was cut off are due again."""
CUT_OFF: Final = "cut off at each attempt"

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


class _Outcome(NamedTuple):
    """What became of an attempt. `fault` is None for a success, `is_final` if no retry can help."""

    position: int
    attempt: int
    fault: str | None = None
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class HandOvers:
    """Makes the hand-overs that are due; any number of processes may.

    `queue` parks those of the HandOverQueue that are set aside.
    """

    live: Ledger
    queue: ParkingSubscriber
    processing: Processing
    clock: Clock

    async def step(self) -> int:
        """Make what is due, for some seconds; return how many were attempted."""
        return await repeated(self._some)

    async def _some(self) -> int:
        """Attempt the next hand-overs; return how many."""
        now = self.clock()
        if not await self.live.database.background.fetchrow(_SQL.hand_overs_due, now):
            return 0
        lease = now + timedelta(seconds=LEASE_SECONDS)
        rows = await self.live.database.background.fetch(
            _SQL.hand_overs_take, now, AT_ONCE_MAX, PAGE_BYTES_MAX, lease
        )
        attempts = {row["position"]: row["attempts"] for row in rows}
        messages, outcomes = await self._decoded(rows, attempts)
        tried = (self._attempt(one, attempts[one.position]) for one in messages)
        await self._settle([*outcomes, *await asyncio.gather(*tried)])
        return len(rows)

    async def _decoded(
        self, rows: Sequence[Row], attempts: dict[int, int]
    ) -> tuple[list[Recorded], list[_Outcome]]:
        """Return the messages that can be read, and the outcomes of the others."""
        unread = list[Unread]()
        stored = sorted(StoredEvent(*tuple(row)[:-1]) for row in rows)  # by position
        try:
            async with self.live.transaction(background=HANDLE_SECONDS_MAX) as transaction:
                ours = [one for one in stored if transaction.is_ours(one)]
                messages = await transaction.decode(ours, unread=unread)
        except KeyUnknown:  # of one of them, which waits until the ring is complete, or mended
            if len(rows) == 1:
                position = rows[0]["position"]
                return [], [_Outcome(position, attempts[position], KeyUnknown.__name__)]
            each = [await self._decoded([row], attempts) for row in rows]
            return [one for some, _ in each for one in some], [
                one for _, some in each for one in some
            ]
        return messages, [
            _Outcome(position, attempts[position], fault, is_final=True)
            for position, fault in [
                *((one.position, one.fault) for one in unread),
                *((one.position, NOT_OURS) for one in stored if one not in ours),
            ]
        ]

    async def _attempt(self, recorded: Recorded, attempt: int) -> _Outcome:
        """Hand a message over."""
        if not isinstance(recorded.event, FirstMessagePosted):  # queued for a log that was cut
            return _Outcome(recorded.position, attempt, "no first message", is_final=True)
        if attempt > ATTEMPTS_MAX:  # the last one was cut off
            return _Outcome(recorded.position, attempt, CUT_OFF)
        try:
            async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
                await self.processing.hand_over(recorded.event)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
            fault = type(error).__name__  # its message may quote the text
            log.warning(
                "hand-over failed",
                message_id=recorded.event.message_id,
                attempts=attempt,
                error_type=fault,
            )
            return _Outcome(recorded.position, attempt, fault)
        return _Outcome(recorded.position, attempt)

    async def _settle(self, outcomes: Sequence[_Outcome]) -> None:
        done = [one.position for one in outcomes if one.fault is None]
        if done:
            await self.live.database.background.fetch(_SQL.hand_overs_done, done)
        for one in outcomes:
            if one.fault is None:
                continue
            if one.is_final or one.attempt >= ATTEMPTS_MAX:
                await self._set_aside(one.position, one.fault)
            else:
                later = self.clock() + wait_after(one.attempt)
                await self.live.database.background.fetch(_SQL.hand_overs_wait, one.position, later)

    async def _set_aside(self, position: int, fault: str) -> None:
        """Park a message, and what follows it in its stream."""
        async with self.live.transaction(background=HANDLE_SECONDS_MAX) as transaction:
            await self.queue.keep_out(transaction)  # it could queue what follows meanwhile
            rows = await transaction.fetch(_SQL.hand_overs_remove, position)
            await self.queue.park(
                transaction,
                [
                    (row["position"], row["stream_id"], fault if row["is_first"] else FOLLOWS)
                    for row in rows
                ],
            )
