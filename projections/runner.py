"""Following the numbered log: the sequencer and the subscribers of the ledgers, as tasks.

A subscriber's checkpoint moves in the transaction of its writes: each event is handled once, as far
as the database goes, and effects outside it are made at least once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from service.ledger.database import LedgerError, Row
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Ledger, Transaction
from service.ledger.sequencer import Sequencer
from service.ledger.sql import Sql

IDLE_SECONDS_MIN = 0.02
IDLE_SECONDS_MAX = 0.5
"""How long an idle follower sleeps. Its own process wakes it at once."""
NUMBERING_REST_SECONDS = 0.01
HANDLING_REST_SECONDS = 0.05
"""How long a follower rests after work. Under load it then takes more at a time and costs less: a
step is up to seven round trips, whether for one event or for hundreds."""
EVENTS_MAX = 500
"""Log positions passed in one transaction."""
HANDLE_SECONDS_MAX = 30.0
HANDLE_SECONDS_BUDGET = 10.0
"""After this no further events are handed over in the same transaction."""
STOP_SECONDS = 0.5
"""After this a follower that has not stopped is told again."""

_BEHIND = Sql("projections", "subscription_behind")
_HOLD = Sql("projections", "subscription_hold")
_REGISTER = Sql("projections", "subscription_register")
_EVENTS = Sql("projections", "subscription_events")
_MOVE = Sql("projections", "subscription_move")

log = structlog.get_logger()


class Subscriber(Protocol):
    """Handles events in the order of the log."""

    name: str

    @property
    def topics(self) -> Collection[type[Event]]:
        """The events that it is given."""
        ...

    @property
    def events_max(self) -> int:
        """How many events it is given at once: 1 where each has an effect that may be slow."""
        ...

    async def handle(self, transaction: Transaction, events: Sequence[Recorded], /) -> None:
        """Write what follows from the events, in the transaction that moves the checkpoint."""
        ...


class Subscription:
    """One subscriber's place in one ledger. Any number may run; a row lock lets one through."""

    def __init__(self, ledger: Ledger, subscriber: Subscriber) -> None:
        """The checkpoint's name is the subscriber's."""
        self._ledger = ledger
        self._subscriber = subscriber
        self._topics = [topic.__name__ for topic in subscriber.topics]
        self.budget_seconds = HANDLE_SECONDS_BUDGET

    async def step(self) -> int:
        """Handle the next events; answer how many there were."""
        name = self._subscriber.name
        if not await self._ledger.database.fetchrow(_BEHIND, name):
            return 0
        async with self._ledger.transaction(HANDLE_SECONDS_MAX) as transaction:
            held = await transaction.fetchrow(_HOLD, name)
            if held is None:
                return len(await transaction.fetch(_REGISTER, name))
            rows = await transaction.fetch(_EVENTS, held["position"], EVENTS_MAX, self._topics)
            if not rows:
                return 0
            position = await self._handle(transaction, rows)
            await transaction.fetch(_MOVE, name, position)
            return len(rows)

    async def _handle(self, transaction: Transaction, rows: Sequence[Row]) -> int:
        """Hand events over until all or their time is over; answer the position that was reached.

        So slow effects move the checkpoint too, instead of being made again from the start.
        """
        ours = [row for row in rows if row["topic"]]
        events = await transaction.decode([tuple(row)[1:] for row in ours])
        clock = asyncio.get_running_loop().time
        ends_at = clock() + self.budget_seconds
        size = self._subscriber.events_max
        for start in range(0, len(events), size):
            await self._subscriber.handle(transaction, events[start : start + size])
            done = start + size
            if done < len(ours) and clock() > ends_at:
                return ours[done - 1]["position"]
        return rows[-1]["position"]


class Follower:
    """A task that repeats a step while there is work and sleeps when there is none."""

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[int]],
        after: Callable[[], None],
        rest_seconds: float = HANDLING_REST_SECONDS,
    ) -> None:
        """`after` is called when a step did something: it wakes whoever comes next."""
        self.name = name
        self._rest_seconds = rest_seconds
        self._step = step
        self._after = after
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look for work now."""
        self._woken.set()

    async def run(self) -> None:
        """Repeat until cancelled. A fault is logged and tried again, later and later."""
        idle = IDLE_SECONDS_MIN
        while True:
            self._woken.clear()
            done = 0
            try:
                done = await self._step()
            except LedgerError as error:
                log.warning("follower waits", subscriber=self.name, error_type=type(error).__name__)
            except Exception:
                log.exception("follower failed", subscriber=self.name)
            if done:
                idle = IDLE_SECONDS_MIN
                self._after()
                await asyncio.sleep(self._rest_seconds)
                continue
            idle = min(idle * 2, IDLE_SECONDS_MAX)
            # Not wait_for: on Python 3.11 it swallows a cancel that meets the wake-up.
            with suppress(TimeoutError):
                async with asyncio.timeout(idle):
                    await self._woken.wait()


class Background:
    """The sequencer and the subscribers of every ledger, in one process."""

    def __init__(
        self, ledgers: Sequence[tuple[Ledger, Sequence[Subscriber]]], loops: Sequence[Follower]
    ) -> None:
        """`loops` are followers that follow no log, such as the one that empties the outbox."""
        self._followers = list(loops)
        for ledger, subscribers in ledgers:
            readers = [
                Follower(f"{ledger.name}.{one.name}", Subscription(ledger, one).step, _wake(loops))
                for one in subscribers
            ]
            sequencer = Follower(
                f"{ledger.name}.sequencer",
                Sequencer(ledger.database).step,
                _wake(readers),
                NUMBERING_REST_SECONDS,
            )
            ledger.on_append = sequencer.wake
            self._followers += [sequencer, *readers]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start following."""
        self._tasks = [asyncio.create_task(one.run(), name=one.name) for one in self._followers]

    async def stop(self) -> None:
        """Stop; what was under way is rolled back and comes again.

        A library may swallow a cancel that meets its own timeout or answer: asked until it ends.
        """
        running = {task for task in self._tasks if not task.done()}
        while running:
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=STOP_SECONDS)


def _wake(followers: Sequence[Follower]) -> Callable[[], None]:
    def wake() -> None:
        for follower in followers:
            follower.wake()

    return wake
