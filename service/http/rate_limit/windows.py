"""What a rate limit returns, and the moving windows of one process.

The memory storage of `limits` is not used: after each hit it walks every key it knows, one thread
hop a key, and it does not return its count in the same step.
"""

import math
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from service.core.clock import Clock, system_clock

KEYS_MAX: Final = 20_000
"""Windows that one process keeps: about 7 MB when a flood uses as many addresses, and 8 MB more for
each million places that they were given within a window."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a window after one request (contract section 8)."""

    limit: int
    """Requests a window."""
    remaining: int
    reset_ms: int
    """Epoch milliseconds at which the oldest request leaves the window."""
    admitted: bool
    wait_ms: float
    """Until the reset, by the clock that measures the window."""

    @property
    def retry_after_seconds(self) -> int:
        """Whole seconds until a place is free, at least 1; for refused requests."""
        return max(1, math.ceil(self.wait_ms / 1000))

    def headers(self) -> dict[str, str]:
        """Return the `X-RateLimit-` headers; on a refusal, `Retry-After` too."""
        fields = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_ms),
        }
        if not self.admitted:
            fields["Retry-After"] = str(self.retry_after_seconds)
        return fields


@dataclass(slots=True)
class _Window:
    """One key's places, oldest first, in monotonic seconds: setting the clock moves nothing.

    An array, whose places have 8 bytes each: a list's have 32.
    """

    places: "array[float]" = field(default_factory=lambda: array("d"))
    full_until: float = 0.0
    reset_ms: int = 0
    """Epoch milliseconds of `full_until`."""
    exceeded: bool = False
    """Whether a request was refused since the window became full."""

    def drop_before(self, moment: float) -> None:
        """Free the places that were taken at `moment` or earlier."""
        gone = 0
        while gone < len(self.places) and self.places[gone] <= moment:
            gone += 1
        del self.places[:gone]


@dataclass(slots=True, kw_only=True)
class LocalWindows:
    """Moving windows of this process: `limit` places a window, at most `keys_max` keys.

    Held are the places that were given within the last window, and those that expire while as many
    more are given as half the keys. A process gives no more than it answers requests, so places
    need no bound of their own, which would forget windows in use or refuse whoever comes last.
    Exact under asyncio, because nothing here awaits.
    """

    limit: int
    window_seconds: float
    clock: Clock = system_clock
    monotonic: Callable[[], float] = time.monotonic
    keys_max: int = KEYS_MAX
    _windows: OrderedDict[str, _Window] = field(
        default_factory=OrderedDict[str, _Window], init=False
    )

    def __len__(self) -> int:
        return len(self._windows)

    @property
    def places(self) -> int:
        """How many places are held, of all keys."""
        return sum(len(window.places) for window in self._windows.values())

    def take(self, key: str) -> Allowance:
        """Take a place, or return a refusal until the oldest is free."""
        now = self.monotonic()
        window = self._window(key, now)
        if now < window.full_until:
            window.exceeded = True
            return self._refusal(window, now)
        window.drop_before(now - self.window_seconds)
        window.exceeded = len(window.places) >= self.limit
        if not window.exceeded:
            window.places.append(now)
        wait_seconds = window.places[0] + self.window_seconds - now
        reset_ms = math.ceil((self.clock().timestamp() + wait_seconds) * 1000)
        if window.exceeded:
            window.full_until, window.reset_ms = now + wait_seconds, reset_ms
            return self._refusal(window, now)
        remaining = self.limit - len(window.places)
        return Allowance(self.limit, remaining, reset_ms, admitted=True, wait_ms=wait_seconds * 1e3)

    def learn(self, key: str, shared: Allowance, *, asked_at: float) -> None:
        """Apply the shared window's result for the place that `take` gave at `asked_at`.

        A full window stays full until its reset, so Redis is not asked before. The wait counts
        from the request (monotonic seconds), not from the reply: one request too many is better
        than a refusal that lasts too long.
        """
        window = self._window(key, self.monotonic())
        if not shared.admitted:
            window.exceeded = True
            del window.places[-1:]
        if shared.remaining == 0:
            # Whatever Redis says, nobody waits longer than one window.
            wait_seconds = min(shared.wait_ms / 1000, self.window_seconds)
            window.full_until = asked_at + wait_seconds
            window.reset_ms = shared.reset_ms

    def refusal(self, key: str) -> Allowance | None:
        """Return the refusal of a key that is over its limit, or None."""
        now = self.monotonic()
        window = self._windows.get(key)
        if window is None or not window.exceeded or now >= window.full_until:
            return None
        return self._refusal(window, now)

    def _refusal(self, window: _Window, now: float) -> Allowance:
        wait_ms = (window.full_until - now) * 1000
        return Allowance(self.limit, 0, window.reset_ms, admitted=False, wait_ms=wait_ms)

    def _window(self, key: str, now: float) -> _Window:
        self._expire(now)
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= self.keys_max:
                self._windows.popitem(last=False)
            window = self._windows[key] = _Window()
        return window

    def _expire(self, now: float) -> None:
        # Two keys are examined each time: expired places and windows go faster than new ones come,
        # without a timer and without a walk over all of them.
        for _ in range(min(2, len(self._windows))):
            key, window = self._windows.popitem(last=False)
            window.drop_before(now - self.window_seconds)
            if window.places or window.full_until > now:
                self._windows[key] = window
