"""Following the numbered log: the sequencer and the subscribers of the ledgers, as tasks.

A subscriber's checkpoint moves in the transaction of its writes: effects in the database happen
exactly once for each event, and effects outside it at least once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from service.core.loops import STEP_SECONDS, Loop
from service.core.outages import Outages
from service.ledger.database import LedgerError
from service.ledger.decoding import PAGE_BYTES_MAX, StoredEvent, is_full
from service.ledger.events import Event
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

IDLE_SECONDS_MIN = 0.02
IDLE_SECONDS_MAX = 0.5
"""How long an idle follower sleeps. Its own process wakes it at once."""
REST_SECONDS_MIN = 0.02
REST_SECONDS_EACH = 0.005
NUMBERING_REST_SECONDS_MAX = 0.025
HANDLING_REST_SECONDS_MAX = 0.25
"""How long a follower rests after work: the longer, the more there was, up to these. Under load it
then handles more events in a step, which is a dozen round trips for one event as for hundreds."""
EVENTS_MAX = 500
"""Log positions passed in one transaction; fewer where events are large (PAGE_BYTES_MAX)."""
HANDLE_SECONDS_MAX = 30.0
HANDLE_SECONDS_BUDGET = 10.0
"""After this no further events are handed over in the same transaction."""

_SQL = queries("service.ledger.following")

log = structlog.get_logger()


class NotInLog(Exception):
    """The log lacks the event that a subscriber came to: it was cut, or restored from before.

    Continuing would skip events that the subscriber has not handled. An operator has to decide.
    """


class Follows(Protocol):
    """What is known about a follower of the log: its name, and which events it gets."""

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
        """Whether events of topics that this release does not know may concern it, too."""
        ...


class Subscriber(Follows, Protocol):
    """Follows the log in order, in the transaction that moves its checkpoint.

    It decodes events itself, so that one that cannot be decoded does not stop it.
    """

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
        """Handle the next events; return how many there were.

        Full pages follow each other, each in a transaction of its own, for STEP_SECONDS.
        """
        time, done = asyncio.get_running_loop().time, 0
        ends_at = time() + STEP_SECONDS
        while True:
            passed, has_more = await self._page()
            done += passed
            if not has_more or time() > ends_at:
                return done

    async def _page(self) -> tuple[int, bool]:
        """Handle a page; return how many events it had, and whether it was full."""
        name = self._subscriber.name
        if not await self._ledger.database.background.fetchrow(_SQL.subscription_behind, name):
            return 0, False
        async with self._ledger.transaction(background=HANDLE_SECONDS_MAX) as transaction:
            held = await transaction.fetchrow(_SQL.subscription_hold, name)
            if held is not None and held["is_lost"]:
                # Perhaps another process moved it while the statement began, which then saw an
                # older log than the checkpoint. Under the lock the same statement cannot miss.
                held = await transaction.fetchrow(_SQL.subscription_hold, name)
            if held is None:
                return len(await transaction.fetch(_SQL.subscription_register, name)), False
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
                return 0, False
            ours = [StoredEvent(*row) for row in rows if row["topic"] is not None]
            stopped_at = await self._handle(transaction, ours)
            position: int = stopped_at or rows[-1]["position"]
            await transaction.fetch(_SQL.subscription_move, name, position)
            passed = position - held["position"]
            has_more = passed == EVENTS_MAX or is_full(rows)
            return passed, has_more and stopped_at is None

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


Step = Callable[[], Awaitable[int | None]]
"""Does what there is to do, and returns how much there was; None: it is not time to look."""
Around = Callable[[str, Step], Step]
"""Returns what runs a step in its place, by the follower's name."""


@dataclass(slots=True)
class Follower:
    """Repeats a step while there is work, and sleeps when there is none.

    `after` is called when a step did something: it wakes the next followers, if there are any.
    `queue` is the name of the subscriber that queues this one's work: `<ledger>.<name>`, if there
    is one. `at_end` ends what a step left running.
    """

    name: str
    step: Step
    after: Callable[[], None] = lambda: None
    queue: str = ""
    rest_seconds_max: float = HANDLING_REST_SECONDS_MAX
    at_end: Callable[[], Awaitable[None]] | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _stands: str | None = field(default=None, init=False)
    _outages: Outages = field(default_factory=Outages, init=False)

    def wake(self) -> None:
        """Look for work now."""
        self._woken.set()

    def rest_seconds(self, done: int) -> float:
        """Return how long to rest after a step that did so much."""
        return min(REST_SECONDS_MIN + REST_SECONDS_EACH * done, self.rest_seconds_max)

    async def run(self) -> None:
        """Repeat until cancelled. After a fault, retry with growing pauses.

        A fault is logged when it begins, once a minute while it lasts, and when it has ended: a
        step that did not look for work does not tell that.
        """
        try:
            await self._repeat()
        finally:
            if self.at_end is not None:
                await self.at_end()

    async def _repeat(self) -> None:
        idle = IDLE_SECONDS_MIN
        while True:
            self._woken.clear()
            done = None
            try:
                done = await self.step()
            except NotInLog as error:
                self._stand(str(error))
            except LedgerError as error:
                why = type(error.__cause__ or error).__name__
                if self._outages.is_due(why):
                    log.warning("follower waits", subscriber=self.name, error_type=why)
            except Exception as error:  # a fault of one follower must not end the process
                if self._outages.is_due(type(error).__name__):
                    log.exception("follower failed", subscriber=self.name)
            else:
                if done is not None and self._outages.end():
                    log.info("follower goes on", subscriber=self.name)
            if done:
                idle, self._stands = IDLE_SECONDS_MIN, None
                self.after()
                await asyncio.sleep(self.rest_seconds(done))
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
            readers = [_reader(ledger, subscriber, loops) for subscriber in subscribers]
            sequencer = Follower(
                f"{ledger.name}.sequencer",
                Sequencer(ledger).step,
                _wake(readers),
                rest_seconds_max=NUMBERING_REST_SECONDS_MAX,
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


def _reader(ledger: Ledger, subscriber: Subscriber, loops: Sequence[Follower]) -> Follower:
    """Return what follows a log for a subscriber, and wakes only the loop whose work it queues."""
    name = f"{ledger.name}.{subscriber.name}"
    woken = [loop for loop in loops if loop.queue == name]
    return Follower(name, Subscription(ledger, subscriber).step, _wake(woken))


def _wake(followers: Sequence[Follower]) -> Callable[[], None]:
    def wake() -> None:
        for follower in followers:
            follower.wake()

    return wake
