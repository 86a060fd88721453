"""Concurrent commands of one process share a statement (decision 6).

Each command remains all or nothing, decides for itself and has its own outcome. Only the round
trips and the commit are shared. Batches are bounded in bytes and in expected time. Large commands
have separate batches, so a small command never waits for more than one large batch.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from service.core.visitors import for_everybody
from service.ledger.database import LedgerUnavailable
from service.ledger.ledger import ATTEMPTS_MAX, locked_seconds
from service.ledger.transaction import AppendConflict, StreamLocked

BATCH_BYTES_MAX: Final = 256 * 1024
"""Of a batch's commands together; a larger command goes alone."""
COMMAND_BYTES: Final = 2 * 1024
"""What a command weighs beside its own bytes: its events, keys and rows."""
LARGE_BYTES: Final = 32 * 1024
"""A heavier command goes into a large batch; one large batch runs at a time."""
GROWTH_BYTES: Final = 2 * 1024
"""By how much a batch may be larger after one that ended in time."""
NEWEST: Final = 0.1
"""The weight of a batch in what is expected of the next one."""
DEADLINE_SHARE: Final = 0.5
"""Of a command's deadline, in which its batch is expected to end."""


class Keyed(Protocol):
    """A command that names the stream it decides on; a stream is in at most one batch at a time."""

    @property
    def key(self) -> Hashable:
        """The stream's id."""
        ...

    @property
    def size(self) -> int:
        """About how many bytes it writes."""
        ...


CommandT = TypeVar("CommandT", bound=Keyed)
OutcomeT = TypeVar("OutcomeT")
Run = Callable[[Sequence[CommandT]], Awaitable[Sequence[OutcomeT | Exception]]]
"""Runs commands in one statement and returns an outcome, or a refusal, for each.

AppendConflict has a command decided again, StreamLocked tried again. A batch that raises is split.
"""


@dataclass(slots=True)
class Entry(Generic[CommandT, OutcomeT]):
    """A command that waits for its outcome; `alone`: its batch failed, so it runs alone."""

    command: CommandT
    future: asyncio.Future[OutcomeT]
    weight: int
    conflicts: int = 0
    locked: int = 0
    alone: bool = False


@dataclass(slots=True)
class BatchLimit:
    """How much a batch may weigh, given how long recent ones took.

    A batch that misses its deadline halves the limit. The expected seconds of the next batch come
    from a line that is fitted to the seconds of recent batches over their weight, by least squares.
    """

    seconds_max: float
    weight: float = BATCH_BYTES_MAX
    _mean_weight: float = 0.0
    _mean_seconds: float = 0.0
    _variance: float = 0.0
    _covariance: float = 0.0

    def allows(self, weight: int) -> bool:
        """Return whether a batch of this weight is expected to end in time.

        Where even an empty one would be late, a smaller one gains little, and writes less.
        """
        if weight > self.weight:
            return False
        per_byte = max(self._covariance / self._variance, 0.0) if self._variance else 0.0
        whatever_its_weight = self._mean_seconds - per_byte * self._mean_weight
        left = max(self.seconds_max - whatever_its_weight, self.seconds_max / 4)
        return weight * per_byte <= left

    def ended(self, weight: int, seconds: float) -> None:
        """Note a batch that ended in time."""
        self.weight = min(self.weight + GROWTH_BYTES, BATCH_BYTES_MAX)
        if not self._mean_seconds:
            self._mean_weight, self._mean_seconds = weight, seconds
        by_weight, by_seconds = weight - self._mean_weight, seconds - self._mean_seconds
        self._mean_weight += NEWEST * by_weight
        self._mean_seconds += NEWEST * by_seconds
        self._variance += NEWEST * ((1 - NEWEST) * by_weight**2 - self._variance)
        self._covariance += NEWEST * ((1 - NEWEST) * by_weight * by_seconds - self._covariance)

    def missed(self, weight: int) -> None:
        """Note a batch that did not end in time."""
        self.weight = max(min(self.weight, weight) / 2, COMMAND_BYTES)


class Batcher(Generic[CommandT, OutcomeT]):
    """Collects commands while earlier batches are under way.

    An idle batcher runs a command at once, so batching adds no latency without load.
    """

    def __init__(
        self,
        run: Run[CommandT, OutcomeT],
        *,
        name: str = "",
        batch_max: int,
        concurrency: int,
        deadline: float,
    ) -> None:
        """`batch_max` commands a batch, `concurrency` batches at once; `name`: in traces.

        `deadline` (seconds) is a command's own, waiting behind other batches included.
        """
        self.name: Final = name
        self._run = run
        self._batch_max = batch_max
        self._deadline = deadline
        self._idle = concurrency
        self._small: deque[Entry[CommandT, OutcomeT]] = deque()
        self._large: deque[Entry[CommandT, OutcomeT]] = deque()
        self._large_runs = False
        self._large_was_last = False
        self._running: set[Hashable] = set()
        self._limit = BatchLimit(deadline * DEADLINE_SHARE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, command: CommandT) -> OutcomeT:
        """Run a command, in a batch or alone; raises what its run raised.

        Raises LedgerUnavailable if its turn did not come, or its run did not end, in time, or its
        stream was locked all the while. A batch that holds it already may still write it.
        """
        loop = asyncio.get_running_loop()
        # Not Entry[CommandT, OutcomeT](…), which the interpreter would look up at every call.
        entry: Entry[CommandT, OutcomeT] = Entry(
            command, loop.create_future(), COMMAND_BYTES + command.size
        )
        self._enqueue(entry)
        deadline = loop.call_later(self._deadline, _expire, entry.future)  # a third of a timeout's
        try:
            return await entry.future
        finally:
            deadline.cancel()

    def _enqueue(self, entry: Entry[CommandT, OutcomeT], *, first: bool = False) -> None:
        lane = self._large if entry.weight > LARGE_BYTES else self._small
        if first:
            lane.appendleft(entry)
        else:
            lane.append(entry)
        if self._idle:
            self._idle -= 1
            task = asyncio.create_task(self._work(), context=for_everybody())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        try:
            while entries := self._take():
                is_large = entries[0].weight > LARGE_BYTES
                keys = [entry.command.key for entry in entries]
                self._running.update(keys)
                self._large_runs |= is_large
                try:
                    await self._run_batch(entries)
                finally:
                    self._running.difference_update(keys)
                    if is_large:
                        self._large_runs = False
        finally:
            self._idle += 1

    def _take(self) -> list[Entry[CommandT, OutcomeT]]:
        """Take the next batch off a queue: large and small ones in turn where both wait."""
        lanes = [self._small] if self._large_runs else [self._large, self._small]
        if self._large_was_last:
            lanes.reverse()
        for lane in lanes:
            if entries := self._take_from(lane):
                self._large_was_last = lane is self._large
                return entries
        return []

    def _take_from(self, lane: deque[Entry[CommandT, OutcomeT]]) -> list[Entry[CommandT, OutcomeT]]:
        """Take commands that can share a batch; a second one of a stream waits for the next."""
        taken: list[Entry[CommandT, OutcomeT]] = []
        later: list[Entry[CommandT, OutcomeT]] = []
        keys: set[Hashable] = set()
        weight = 0
        while lane and len(taken) < self._batch_max:
            entry = lane.popleft()
            if entry.future.done():  # its request has gone
                continue
            key = entry.command.key
            if key in keys or key in self._running:
                later.append(entry)
                continue
            weight += entry.weight
            if taken and (entry.alone or taken[0].alone or not self._limit.allows(weight)):
                lane.appendleft(entry)
                break
            taken.append(entry)
            keys.add(key)
        lane.extendleft(reversed(later))
        return taken

    async def _run_batch(self, entries: Sequence[Entry[CommandT, OutcomeT]]) -> None:
        loop = asyncio.get_running_loop()
        weight, begun = sum(entry.weight for entry in entries), loop.time()
        outcomes: Sequence[OutcomeT | Exception]
        try:
            outcomes = await self._run([entry.command for entry in entries])
        except LedgerUnavailable as error:  # alone, each would wait for the same PostgreSQL
            self._limit.missed(weight)
            outcomes = [error] * len(entries)
        except Exception as error:  # noqa: BLE001 - a conflict, or a fault of one of them
            if len(entries) > 1:
                for entry in entries:
                    entry.alone = True
                    if not entry.future.done():
                        await self._run_batch([entry])
                return
            outcomes = [error]
        else:
            self._limit.ended(weight, loop.time() - begun)
        for entry, outcome in zip(entries, outcomes, strict=True):
            self._settle(entry, outcome)

    def _settle(self, entry: Entry[CommandT, OutcomeT], outcome: OutcomeT | Exception) -> None:
        """Give a command its outcome, or queue it to be decided or tried again."""
        if isinstance(outcome, AppendConflict) and entry.conflicts < ATTEMPTS_MAX:
            entry.conflicts += 1
            self._enqueue(entry, first=True)
        elif isinstance(outcome, StreamLocked):
            seconds = locked_seconds(entry.locked)
            entry.locked += 1
            if not entry.future.done():
                asyncio.get_running_loop().call_later(seconds, self._enqueue, entry)
        else:
            _settle(entry.future, outcome)


def _expire(future: "asyncio.Future[OutcomeT]") -> None:
    late = LedgerUnavailable("no answer to a batch in time")
    late.__cause__ = TimeoutError()  # as for a statement, and as the log names it
    _settle(future, late)


def _settle(future: "asyncio.Future[OutcomeT]", outcome: OutcomeT | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
