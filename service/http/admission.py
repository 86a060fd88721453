"""Admission: how many requests, and how many bytes of large bodies, a process has at once.

A request that cannot be answered within its deadline is refused when it arrives. It would otherwise
wait, cost as much as one that is answered, and time out: under twice the load nobody would be
served.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from service.core.errors import Refusal, busy

IN_FLIGHT_MIN: Final = 128
"""Requests of a kind that are admitted at once however slow they are, so that a few that wait for
something slow, such as object storage, keep nobody out."""
BUSY_FROM: Final = 32
"""Requests in flight from which the rate of answers is the capacity and not the demand."""
PER_SECOND_FIRST: Final = 500.0
"""Taken for the capacity of a process until it has been busy."""
WINDOW_SECONDS: Final = 0.1
SMOOTHING: Final = 0.3
"""The weight of a window in the estimate: nine tenths of a change are seen after 0.7 s."""
WAIT_SHARE: Final = 0.25
"""Of a deadline: what a request may expect to wait. A longer queue answers no more: at half a
deadline twice the load took 30 MB more, and each answer twice as long."""
BODY_WAIT_SHARE: Final = 0.5
"""Of a deadline: how long a large body may wait for room. It is not read meanwhile."""
PATIENCE_SHARE: Final = 0.25
"""Of a deadline: when it takes the room of bodies that were there before it and are still arriving,
so that whoever sends slowly keeps others out no longer."""
SLOW: Final = "The body was slow to arrive, and others waited for its room."

SMALL_BYTES_MAX: Final = 64 * 1024
"""Bodies up to this size are not counted: the requests that hold them are."""
BODY_BYTES_IN_FLIGHT_MAX: Final = 4 * 1024 * 1024
"""Large bodies in a process at once. With 8 MiB a process reached 194 MB in overload, 100 more
than with small ones alone; more at once answers none sooner, as one processor decodes them."""
BODY_BYTES_OF_ONE_MAX: Final = BODY_BYTES_IN_FLIGHT_MAX // 2
"""Of them one partner may hold half: one that sends slowly keeps only itself waiting."""

LATE_SECONDS: Final = 0.25
"""From when on a body is awaited without a place. Nearly all come with their heads."""
LATE_MAX: Final = 128
"""Late bodies in a process, 64 KiB each at most: larger ones have taken room."""
LATE_OF_ONE_MAX: Final = LATE_MAX // 4
"""Of them one partner's; what is late beyond that is refused."""

BUSY: Final = "The service is busy; it would not answer in time."


@dataclass(slots=True)
class Lane:
    """The requests of one kind: their number, and the rate at which they are answered."""

    wait_seconds_max: float
    monotonic: Callable[[], float] = time.monotonic
    in_flight: int = 0
    per_second: float = PER_SECOND_FIRST
    _answered: int = 0
    _since: float = 0.0

    def enter(self) -> bool:
        """Admit a request if it can expect an answer in time."""
        if self.in_flight < BUSY_FROM:
            self._answered, self._since = 0, self.monotonic()
        elif self.in_flight >= IN_FLIGHT_MIN:
            self._measure()
            if self.in_flight >= self.per_second * self.wait_seconds_max:
                return False
        self.in_flight += 1
        return True

    def leave(self) -> None:
        """Count an answer."""
        self.in_flight -= 1
        self._answered += 1
        self._measure()

    def _measure(self) -> None:
        elapsed = (now := self.monotonic()) - self._since
        if elapsed >= WINDOW_SECONDS:
            # A window that lasted, because nobody came and nobody left, weighs as much as it took.
            weight = 1 - (1 - SMOOTHING) ** (elapsed / WINDOW_SECONDS)
            if self.in_flight >= BUSY_FROM:
                self.per_second += weight * (self._answered / elapsed - self.per_second)
            self._answered, self._since = 0, now


@dataclass(frozen=True, slots=True, eq=False)
class Arriving:
    """A large body of which a part is still to come."""

    size: int
    since: float
    """By the loop's clock."""
    end: Callable[[], object]


@dataclass(slots=True)
class BodyRoom:
    """Room for large bodies. They wait in turn; meanwhile the sender's network holds them."""

    wait_seconds_max: float
    patience_seconds: float
    held: Counter[str] = field(default_factory=Counter[str])
    """Bytes, by owner."""
    arriving: list[Arriving] = field(default_factory=list[Arriving])
    """The oldest first."""
    _waiting: list[tuple[str, int, asyncio.Future[None]]] = field(
        default_factory=list[tuple[str, int, asyncio.Future[None]]]
    )

    async def take(self, owner: str, size: int) -> None:
        """Take room for a body before it is read. Raises Refusal where none is free in time."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((owner, size, turn))
        self._admit()
        expiry = loop.call_later(self.wait_seconds_max, _expire, turn)
        press = loop.call_later(self.patience_seconds, self._press, owner, size)
        try:
            await turn
        except (Refusal, asyncio.CancelledError):
            if not turn.cancelled() and turn.exception() is None:  # its turn had come
                self.give_back(owner, size)
            else:  # room was kept free for it, in which those behind it may fit
                self._admit()
            raise
        finally:
            expiry.cancel()
            press.cancel()

    @contextmanager
    def arrives(self, size: int, end: Callable[[], object]) -> Generator[None]:
        """Meanwhile a body that has room arrives, until `end` is called because others wait."""
        body = Arriving(size, asyncio.get_running_loop().time(), end)
        self.arriving.append(body)
        try:
            yield
        finally:
            if body in self.arriving:
                self.arriving.remove(body)

    def give_back(self, owner: str, size: int) -> None:
        """Free room, and admit those that fit now."""
        self.held[owner] -= size
        if not self.held[owner]:
            del self.held[owner]
        self._admit()

    def _press(self, owner: str, size: int) -> None:
        """End as many of the bodies that arrive as are in one's way, those that came first."""
        if self.held[owner] + size > BODY_BYTES_OF_ONE_MAX:  # waits for nobody but itself
            return
        before = asyncio.get_running_loop().time() - self.patience_seconds
        while self.arriving and self.arriving[0].since <= before and size > 0:
            body = self.arriving.pop(0)
            body.end()
            size -= body.size

    def _admit(self) -> None:
        """Admit those that fit, in turn, but owners who hold less first.

        Who waits for their own share keeps nobody waiting.
        """
        waiting = [one for one in self._waiting if not one[2].done()]  # not refused, nor gone
        free = BODY_BYTES_IN_FLIGHT_MAX - self.held.total()
        for owner, size, turn in sorted(waiting, key=lambda one: self.held[one[0]]):
            shared = self.held[owner] + size <= BODY_BYTES_OF_ONE_MAX
            if shared and size <= free:
                self.held[owner] += size
                turn.set_result(None)
            free -= size if shared else 0
        self._waiting = [one for one in waiting if not one[2].done()]


@dataclass(slots=True)
class AdmittedRequest:
    """What one request occupies until it is answered."""

    lane: Lane | None
    room: BodyRoom
    late: Counter[str]
    """Late bodies of the process, by owner."""
    owner: str = ""
    body_bytes: int = 0
    is_late: bool = False

    async def hold(self, owner: str, size: int) -> None:
        """Take room for its body. Raises Refusal where none is free in time."""
        self.owner = owner
        if size > SMALL_BYTES_MAX:
            await self.room.take(owner, size)
            self.body_bytes = size

    def arrives(self, end: Callable[[], object]) -> AbstractContextManager[None]:
        """Read its body meanwhile, until `end` is called because others wait for its room."""
        return self.room.arrives(self.body_bytes, end) if self.body_bytes else nullcontext()

    def step_out(self) -> bool:
        """Await a late body without a place; return False where too many are awaited so."""
        if self.lane is None:
            return True
        if self.late[self.owner] >= LATE_OF_ONE_MAX or self.late.total() >= LATE_MAX:
            return False
        self.late[self.owner] += 1
        self.lane.in_flight -= 1
        self.is_late = True
        return True

    def step_in(self) -> None:
        """Have a place again, if it was left: its body has come, or never will."""
        if self.lane is not None and self.is_late:
            self.late[self.owner] -= 1
            if not self.late[self.owner]:
                del self.late[self.owner]
            self.lane.in_flight += 1
            self.is_late = False

    def shrink(self, size: int) -> None:
        """Free the room beyond so many bytes, which are all that it keeps of its body."""
        kept = size if size > SMALL_BYTES_MAX else 0
        if kept < self.body_bytes:
            self.room.give_back(self.owner, self.body_bytes - kept)
            self.body_bytes = kept

    def leave(self) -> None:
        """Leave, once the request is answered."""
        if self.lane is not None:
            self.lane.leave()
        self.shrink(0)


class Admission:
    """The places of one process; reads and writes apart, so that neither waits for the other."""

    def __init__(
        self, deadline_seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`deadline_seconds` is what a request may take; `monotonic` (seconds) measures."""
        wait = deadline_seconds * WAIT_SHARE
        self.reads, self.writes = Lane(wait, monotonic), Lane(wait, monotonic)
        self.room = BodyRoom(deadline_seconds * BODY_WAIT_SHARE, deadline_seconds * PATIENCE_SHARE)
        self.late = Counter[str]()

    def enter(self, method: str, *, limited: bool) -> AdmittedRequest | None:
        """Return a request's place, or None where it would not be answered in time.

        Those that are not `limited` are admitted, whatever waits.
        """
        if not limited:
            return AdmittedRequest(None, self.room, self.late)
        lane = self.reads if method in {"GET", "HEAD"} else self.writes
        return AdmittedRequest(lane, self.room, self.late) if lane.enter() else None


def _expire(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_exception(busy(BUSY))
