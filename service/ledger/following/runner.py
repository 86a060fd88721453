"""Following the numbered log: the sequencer and the subscribers of the ledgers, as tasks.

A subscriber's checkpoint moves in the transaction of its writes: each event is handled once, as far
as the database goes, and effects outside it are made at least once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from service.core.loops import Loop
from service.ledger.database import LedgerError
from service.ledger.decoding import PAGE_BYTES_MAX, StoredEvent
from service.ledger.events import Event
from service.ledger.ledger import Ledger, Transaction
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries

IDLE_SECONDS_MIN = 0.02
IDLE_SECONDS_MAX = 0.5
"""How long an idle follower sleeps. Its own process wakes it at once."""
NUMBERING_REST_SECONDS = 0.01
HANDLING_REST_SECONDS = 0.05
"""How long a follower rests after work. Under load it then handles more events in a step, which is
up to seven round trips, whether for one event or for hundreds."""
EVENTS_MAX = 500
"""Log positions passed in one transaction; fewer where events are large (PAGE_BYTES_MAX)."""
HANDLE_SECONDS_MAX = 30.0
HANDLE_SECONDS_BUDGET = 10.0
"""After this no further events are handed over in the same transaction."""

_SQL = queries("service.ledger.following")

log = structlog.get_logger()


class NotInLog(Exception):
    """The log lacks the event that a subscriber came to: it was cut, or restored from before.

    Continuing would pass over events that it has not handled. An operator has to decide.
    """


class Subscriber(Protocol):
    """Follows the log's order, in the transaction that moves its checkpoint.

    It decodes for itself, so that an event that cannot be decoded does not stop it.
    """

    name: str

    @property
    def topics(self) -> Collection[type[Event]]:
        """The events that it is given."""
        ...

    @property
    def events_max(self) -> int:
        """How many events it is given at once: few where each has an effect that may be slow."""
        ...

    @property
    def takes_unknown(self) -> bool:
        """Whether it is given events of topics that nobody knows, too: they may concern it."""
        ...

    async def handle_stored(
        self, transaction: Transaction, events: Sequence[StoredEvent], /
    ) -> None:
        """Write what follows from the events."""
        ...


class Subscription:
    """One subscriber's place in one ledger. Any number may run; a row lock lets one through."""

    def __init__(self, ledger: Ledger, subscriber: Subscriber) -> None:
        """Keep a checkpoint under the subscriber's name."""
        self._ledger = ledger
        self._subscriber = subscriber
        self._topics = [topic.__name__ for topic in subscriber.topics]
        self._known = ledger.codec.topics if subscriber.takes_unknown else None
        self.budget_seconds = HANDLE_SECONDS_BUDGET

    async def step(self) -> int:
        """Handle the next events; return how many there were."""
        name = self._subscriber.name
        if not await self._ledger.database.background.fetchrow(_SQL.subscription_behind, name):
            return 0
        async with self._ledger.transaction(background=HANDLE_SECONDS_MAX) as transaction:
            held = await transaction.fetchrow(_SQL.subscription_hold, name)
            if held is not None and held["is_lost"]:
                # Perhaps another process moved it while the statement began, which then saw an
                # older log than the checkpoint. Under the lock the same statement cannot miss.
                held = await transaction.fetchrow(_SQL.subscription_hold, name)
            if held is None:
                return len(await transaction.fetch(_SQL.subscription_register, name))
            if held["is_lost"]:
                raise NotInLog(f"the log does not have the event at position {held['position']}")
            rows = await transaction.fetch(
                _SQL.subscription_events,
                held["position"],
                EVENTS_MAX,
                self._topics,
                self._known,
                PAGE_BYTES_MAX,
            )
            if not rows:
                return 0
            ours = [StoredEvent(*row) for row in rows if row["topic"] is not None]
            position = await self._handle(transaction, ours) or rows[-1]["position"]
            await transaction.fetch(_SQL.subscription_move, name, position)
            return len(rows)

    async def _handle(self, transaction: Transaction, events: Sequence[StoredEvent]) -> int | None:
        """Hand events over until all are, or the time is up; then return the position reached.

        So slow effects move the checkpoint too, instead of being made again from the start.
        """
        clock = asyncio.get_running_loop().time
        ends_at = clock() + self.budget_seconds
        size = self._subscriber.events_max
        for start in range(0, len(events), size):
            done = start + size
            await self._subscriber.handle_stored(transaction, events[start:done])
            if done < len(events) and clock() > ends_at:
                return events[done - 1].position
        return None


Step = Callable[[], Awaitable[int]]
"""Does what there is to do, and returns how much there was."""
Around = Callable[[str, Step], Step]
"""Returns what runs a step in its place, by the follower's name."""


@dataclass(slots=True)
class Follower:
    """Repeats a step while there is work, and sleeps when there is none.

    `after` is called when a step did something: it wakes the next followers.
    """

    name: str
    step: Step
    after: Callable[[], None]
    rest_seconds: float = HANDLING_REST_SECONDS
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _stands: str | None = field(default=None, init=False)

    def wake(self) -> None:
        """Look for work now."""
        self._woken.set()

    async def run(self) -> None:
        """Repeat until cancelled. After a fault, which is logged, retry with growing pauses."""
        idle = IDLE_SECONDS_MIN
        while True:
            self._woken.clear()
            done = 0
            try:
                done = await self.step()
            except NotInLog as error:
                self._stand(str(error))
            except LedgerError as error:
                log.warning("follower waits", subscriber=self.name, error_type=type(error).__name__)
            except Exception:  # a fault of one follower must not end the process
                log.exception("follower failed", subscriber=self.name)
            if done:
                idle, self._stands = IDLE_SECONDS_MIN, None
                self.after()
                await asyncio.sleep(self.rest_seconds)
                continue
            idle = min(idle * 2, IDLE_SECONDS_MAX)
            # Not wait_for: on Python 3.11 it swallows a cancel that meets the wake-up.
            with suppress(TimeoutError):
                async with asyncio.timeout(idle):
                    await self._woken.wait()

    def _stand(self, why: str) -> None:
        """Log once that it cannot continue by itself; it keeps checking whether it can."""
        if self._stands != why:
            self._stands = why
            log.error("follower stands still", subscriber=self.name, error_type=NotInLog.__name__)


class Background:
    """The sequencer and the subscribers of every ledger, in one process."""

    def __init__(
        self,
        ledgers: Sequence[tuple[Ledger, Sequence[Subscriber]]],
        loops: Sequence[Follower],
        around: Around | None = None,
    ) -> None:
        """`loops` are followers that follow no log, such as the one that empties the outbox.

        `around` wraps the step of each follower.
        """
        followers = list(loops)
        for ledger, subscribers in ledgers:
            readers = [
                Follower(
                    f"{ledger.name}.{subscriber.name}",
                    Subscription(ledger, subscriber).step,
                    _wake(loops),
                )
                for subscriber in subscribers
            ]
            sequencer = Follower(
                f"{ledger.name}.sequencer",
                Sequencer(ledger).step,
                _wake(readers),
                NUMBERING_REST_SECONDS,
            )
            ledger.on_append = sequencer.wake
            followers += [sequencer, *readers]
        if around is not None:
            for follower in followers:
                follower.step = around(follower.name, follower.step)
        self._loops = [Loop(follower.name, follower.run) for follower in followers]

    def start(self) -> None:
        """Start following."""
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """Stop; what was under way is rolled back and handled again at the next start."""
        await asyncio.gather(*(loop.stop() for loop in self._loops))


def _wake(followers: Sequence[Follower]) -> Callable[[], None]:
    def wake() -> None:
        for follower in followers:
            follower.wake()

    return wake
