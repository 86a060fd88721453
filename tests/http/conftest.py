"""Limiters of a test, by whose time their windows move on."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from service.http.rate_limit import redis
from service.http.rate_limit.limiter import RateLimiter
from service.http.rate_limit.redis import TIMEOUT_SECONDS
from tests.http.limiting import Make, Time
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def moment() -> Time:
    """Return the time of this test."""
    return Time()


@pytest.fixture
async def make(moment: Time, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    """Return a maker of limiters that are closed after the test.

    `patient`: a Redis has as long as tests wait; else what is waited for it in production.
    """
    async with AsyncExitStack() as stack:

        def build(redis_url: str | None, *, patient: bool = True, **options) -> RateLimiter:
            seconds = PATIENCE_SECONDS if patient else TIMEOUT_SECONDS
            monkeypatch.setattr(redis, "TIMEOUT_SECONDS", seconds)
            times = {"clock": moment.clock, "monotonic": moment.monotonic}
            limiter = RateLimiter(redis_url=redis_url, **({"per_minute": 120} | times | options))
            stack.push_async_callback(limiter.close)
            return limiter

        yield build
