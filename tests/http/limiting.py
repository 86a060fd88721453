"""Limiters that charge many requests at once, and the time that they measure by."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from service.http.rate_limit.limiter import RateLimiter
from service.http.rate_limit.windows import Allowance
from tests.redis_server import RedisServer

Make = Callable[..., RateLimiter]

HOUR = 3600.0
"""A window that a slow machine does not outlast, in seconds."""


class Time:
    """The time of a test, which passes only where the test says so."""

    def __init__(self) -> None:
        """Begin at some moment."""
        self.seconds = 1000.0
        self.redis: RedisServer | None = None

    def monotonic(self) -> float:
        """Return the seconds that windows are measured by."""
        return self.seconds

    def clock(self) -> datetime:
        """Return the moment that resets are dated by."""
        return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def passes(self, seconds: float) -> None:
        """Let time pass; in Redis, whose clock is its own, every place becomes that much older."""
        self.seconds += seconds
        if self.redis:
            age = (
                "for _, key in ipairs(redis.call('KEYS', '{claim-ledger}:rate:*')) do "
                "for i, at in ipairs(redis.call('LRANGE', key, 0, -1)) do "
                "redis.call('LSET', key, i - 1, string.format('%.6f', at - ARGV[1])) end end"
            )
            self.redis.command("EVAL", age, "0", str(seconds))


async def charge(limiter: RateLimiter, times: int, partner_id: str = "p1") -> list[Allowance]:
    """Return the allowances of so many charges at once."""
    return await asyncio.gather(*(limiter.charge(partner_id) for _ in range(times)))


def is_blocked(limiter: RateLimiter, address: str) -> bool:
    """Return whether the process knows the address to be over its limit."""
    return limiter.refusal_of(address) is not None


def admitted(allowances: list[Allowance]) -> int:
    """Return how many were admitted."""
    return sum(allowance.admitted for allowance in allowances)
