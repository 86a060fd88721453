"""Limiters of a test, by whose time their windows move on."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from service.http.rate_limit.limiter import RateLimiter
from tests.http.limiting import Make, Time


@pytest.fixture
def moment() -> Time:
    """Return the time of this test."""
    return Time()


@pytest.fixture
async def make(moment: Time) -> AsyncIterator[Make]:
    """Return a maker of limiters that are closed after the test."""
    async with AsyncExitStack() as stack:

        def build(redis_url: str | None, **options) -> RateLimiter:
            times = {"clock": moment.clock, "monotonic": moment.monotonic}
            limiter = RateLimiter(redis_url=redis_url, **({"per_minute": 120} | times | options))
            stack.push_async_callback(limiter.close)
            return limiter

        yield build
