"""Processing a queue of effects outside the database: each at least once, and by itself.

An attempt is counted before it is made, with a lease after which it is due again if its process was
interrupted. Failed attempts are repeated with growing waits, and set aside after the last one, as
events are parked.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from service.core.clock import Clock
from service.core.loops import repeated
from service.core.retries import FOR_A_DAY, Retries

CUT_OFF: Final = "cut off at each attempt"


class Hopeless(Exception):
    """No retry can help; `str()` is the fault under which the entry is set aside."""


class NotBefore(Exception):
    """A retry can succeed after `seconds` at the earliest."""

    def __init__(self, fault: str, seconds: float) -> None:
        super().__init__(fault)
        self.seconds = seconds


class Queued(Protocol):
    """An entry of a queue."""

    @property
    def attempts(self) -> int:
        """Which attempt this is, counted from 1."""
        ...


T = TypeVar("T", bound=Queued)


class Work(Protocol[T]):
    """A queue, and how its entries are processed."""

    @property
    def seconds_max(self) -> float:
        """How long one attempt may take."""
        ...

    @property
    def lease_seconds(self) -> float:
        """After this, what a process took that was cut off is due again."""
        ...

    async def take(self, now: datetime, until: datetime, /) -> Sequence[T]:
        """Return what is due now, an attempt counted, and due again at `until`; nothing if none."""
        ...

    def held(self, items: Sequence[T], /) -> AbstractAsyncContextManager[Sequence[T]]:
        """Hold what the attempts need until all have ended; return those that may be made.

        The others are due again at the end of their lease.
        """
        ...

    async def attempt(self, item: T, /) -> None:
        """Do it; raise Hopeless where no retry can help, anything else where one can."""
        ...

    def log_failure(self, item: T, error_type: str, /) -> None:
        """Log an attempt that failed: the error's message may quote what is personal."""
        ...

    async def done(self, items: Sequence[T], /) -> None:
        """Remove what was done."""
        ...

    async def wait(self, item: T, later: datetime, fault: str, /) -> None:
        """Make it due again later."""
        ...

    async def set_aside(self, item: T, fault: str, /) -> None:
        """Take it out of the queue, and park the event that it follows from."""
        ...


class _Outcome(NamedTuple, Generic[T]):
    """The outcome of an attempt. `fault` is None for a success, `is_final` if no retry can help.

    A retry waits for at least `seconds_min`.
    """

    item: T
    fault: str | None = None
    is_final: bool = False
    seconds_min: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueRunner(Generic[T]):
    """Does what is due in a queue; any number of processes may."""

    work: Work[T]
    clock: Clock
    retries: Retries = FOR_A_DAY

    async def step(self) -> int:
        """Do what is due, for some seconds; return how many were attempted."""
        return await repeated(self._some)

    async def _some(self) -> int:
        now = self.clock()
        items = await self.work.take(now, now + timedelta(seconds=self.work.lease_seconds))
        async with self.work.held(items) as ready:
            outcomes = await asyncio.gather(*map(self._attempt, ready))
        done = [one.item for one in outcomes if one.fault is None]
        if done:
            await self.work.done(done)
        for item, fault, is_final, seconds_min in outcomes:
            if fault is None:
                continue
            if is_final or item.attempts >= self.retries.attempts_max:
                await self.work.set_aside(item, fault)
            else:
                wait = max(self.retries.wait_after(item.attempts), timedelta(seconds=seconds_min))
                await self.work.wait(item, self.clock() + wait, fault)
        return len(items)

    async def _attempt(self, item: T) -> _Outcome[T]:
        if item.attempts > self.retries.attempts_max:  # the last one was cut off
            return _Outcome(item, CUT_OFF)
        try:
            async with asyncio.timeout(self.work.seconds_max):
                await self.work.attempt(item)
        except Hopeless as error:
            return _Outcome(item, str(error), is_final=True)
        except NotBefore as error:
            self.work.log_failure(item, str(error))
            return _Outcome(item, str(error), seconds_min=error.seconds)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
            self.work.log_failure(item, type(error).__name__)
            return _Outcome(item, type(error).__name__)
        return _Outcome(item)
