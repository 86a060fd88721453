"""Concurrent commands of one process share a transaction (design, speed to reach).

Each command stays all or nothing and decides for itself; only the round trips and the commit are
shared. A batch that conflicts or fails is split, and each of its commands is tried alone.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from service.ledger.database import LedgerUnavailable
from service.ledger.ledger import ATTEMPTS_MAX, AppendConflict, StreamLocked

LOCKED_SECONDS = 0.01
"""Until a command whose stream another holds is tried again."""


class Keyed(Protocol):
    """A command that names the stream it decides on; a batch holds no stream twice."""

    @property
    def key(self) -> Hashable:
        """The stream's id."""
        ...


CommandT = TypeVar("CommandT", bound=Keyed)
OutcomeT = TypeVar("OutcomeT")
Run = Callable[[Sequence[CommandT]], Awaitable[Sequence[OutcomeT | Exception]]]
"""Runs commands in one transaction and returns an outcome, or a refusal, for each."""


class Batcher(Generic[CommandT, OutcomeT]):
    """Collects commands while earlier batches are under way.

    An idle batcher runs a command at once, so batching costs no latency where there is no load.
    """

    def __init__(
        self,
        run: Run[CommandT, OutcomeT],
        *,
        batch_max: int,
        concurrency: int,
        deadline: float,
    ) -> None:
        """`batch_max` commands a transaction, `concurrency` transactions at once.

        `deadline` (seconds) is a command's own, waiting behind other batches included.
        """
        self._run = run
        self._batch_max = batch_max
        self._deadline = deadline
        self._idle = concurrency
        self._queue: deque[tuple[CommandT, asyncio.Future[OutcomeT]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, command: CommandT) -> OutcomeT:
        """Run a command, in a batch or alone; raises what its run raised.

        Raises LedgerUnavailable if its turn did not come, or its run did not end, in time. A batch
        that holds it already may still write it.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[OutcomeT] = loop.create_future()
        self._enqueue((command, future))
        deadline = loop.call_later(self._deadline, _expire, future)  # a third of a timeout's cost
        try:
            return await future
        finally:
            deadline.cancel()

    def _enqueue(self, entry: tuple[CommandT, asyncio.Future[OutcomeT]]) -> None:
        self._queue.append(entry)
        if self._idle:
            self._idle -= 1
            task = asyncio.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        try:
            while self._queue:
                if entries := self._take():
                    await self._run_batch(entries)
        finally:
            self._idle += 1

    def _take(self) -> list[tuple[CommandT, asyncio.Future[OutcomeT]]]:
        """Take a batch off the queue; a second command of one stream waits for the next."""
        taken: dict[Hashable, tuple[CommandT, asyncio.Future[OutcomeT]]] = {}
        later: list[tuple[CommandT, asyncio.Future[OutcomeT]]] = []
        while self._queue and len(taken) < self._batch_max:
            entry = self._queue.popleft()
            if entry[1].done():  # its request has gone
                continue
            if entry[0].key in taken:
                later.append(entry)
            else:
                taken[entry[0].key] = entry
        self._queue.extendleft(reversed(later))
        return list(taken.values())

    async def _run_batch(
        self, entries: Sequence[tuple[CommandT, asyncio.Future[OutcomeT]]]
    ) -> None:
        try:
            outcomes = await self._run([command for command, _ in entries])
        except LedgerUnavailable as error:  # alone, each would wait for the same PostgreSQL
            outcomes = [error] * len(entries)
        except Exception as error:  # noqa: BLE001 - a conflict, or a fault of one of them
            failed = error if len(entries) == 1 else None
            for entry in entries:
                await self._run_alone(*entry, failed)
            return
        for entry, outcome in zip(entries, outcomes, strict=True):
            match outcome:
                case AppendConflict():
                    await self._run_alone(*entry, outcome)
                case StreamLocked():
                    self._try_later(entry)
                case _:
                    _settle(entry[1], outcome)

    def _try_later(self, entry: tuple[CommandT, asyncio.Future[OutcomeT]]) -> None:
        """Put a command whose stream is locked back into the queue; it holds nothing meanwhile."""
        asyncio.get_running_loop().call_later(LOCKED_SECONDS, self._enqueue, entry)

    async def _run_alone(
        self, command: CommandT, future: asyncio.Future[OutcomeT], failed: Exception | None
    ) -> None:
        """Decide again on a conflict. A taken public id is the caller's to retry (contract 7)."""
        outcome: OutcomeT | Exception | None = failed
        for _ in range(ATTEMPTS_MAX):
            if future.done():  # its request has gone
                return
            if isinstance(outcome, StreamLocked):
                self._try_later((command, future))
                return
            if outcome is not None and not isinstance(outcome, AppendConflict):
                break
            try:
                (outcome,) = await self._run([command])
            except Exception as error:  # noqa: BLE001 - the waiting request gets it
                outcome = error
        if outcome is not None:
            _settle(future, outcome)


def _expire(future: "asyncio.Future[OutcomeT]") -> None:
    _settle(future, LedgerUnavailable("no answer to a batch in time"))


def _settle(future: "asyncio.Future[OutcomeT]", outcome: OutcomeT | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
