"""The rate limit, whose contract holds in memory and in Redis, and the windows of one process."""

import math
import time
from datetime import UTC, datetime

import pytest

from service.http.rate_limit.windows import Allowance, LocalWindows
from tests.http.limiting import HOUR, Make, Time, admitted, charge, is_blocked


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.server)])
def url(request: pytest.FixtureRequest, moment: Time) -> str | None:
    """Return where the windows are kept: the contract holds for both."""
    if request.param == "memory":
        return None
    moment.redis = request.getfixturevalue("redis_server")
    return moment.redis.url


async def test_remaining_counts_down(make: Make, url: str | None) -> None:
    """Each charge leaves one less, down to 0, and a refused one leaves 0."""
    limiter = make(url, per_minute=3)
    answers = [await limiter.charge("p1") for _ in range(4)]
    assert [(answer.limit, answer.remaining, answer.admitted) for answer in answers] == [
        (3, 2, True),
        (3, 1, True),
        (3, 0, True),
        (3, 0, False),
    ]


async def test_a_thousand_at_once(make: Make, url: str | None) -> None:
    """Of 1,000 charges at once exactly the limit is admitted, with every remaining figure once."""
    answers = await charge(make(url), 1000)
    assert sorted(a.remaining for a in answers if a.admitted) == list(range(120))
    assert {a.remaining for a in answers if not a.admitted} == {0}


async def test_reset_is_when_the_oldest_leaves(make: Make, url: str | None, moment: Time) -> None:
    """The reset is epoch milliseconds, 60 s after the first charge, also for later ones."""
    limiter = make(url, per_minute=2)
    before_ms = (time.time() if url else moment.clock().timestamp()) * 1000
    first = await limiter.charge("p1")
    after_ms = (time.time() if url else moment.clock().timestamp()) * 1000
    rest = [await limiter.charge("p1") for _ in range(3)]
    assert before_ms <= first.reset_ms - 60_000 <= after_ms + 1
    # A millisecond's edge may be rounded either way.
    assert all(abs(answer.reset_ms - first.reset_ms) <= 1 for answer in rest)


async def test_retry_after_is_the_reset_in_whole_seconds(make: Make, url: str | None) -> None:
    """A refusal says when a place is free: the wait to the reset in seconds, rounded up."""
    _, refused = await charge(make(url, per_minute=1), 2)
    assert 0 < refused.wait_ms <= 60_000
    assert refused.retry_after_seconds == math.ceil(refused.wait_ms / 1000)
    assert refused.headers()["Retry-After"] == str(refused.retry_after_seconds)


async def test_the_window_moves_on(make: Make, url: str | None, moment: Time) -> None:
    """Places come back one by one, each a window after it was taken, and not before."""
    limiter = make(url, per_minute=2, window_seconds=HOUR)
    await limiter.charge("p1")
    moment.passes(HOUR / 2)
    await limiter.charge("p1")
    assert admitted(await charge(limiter, 5)) == 0
    moment.passes(HOUR / 2)
    assert admitted(await charge(limiter, 5)) == 1
    moment.passes(HOUR / 2)
    assert admitted(await charge(limiter, 5)) == 1


async def test_partners_do_not_share(make: Make, url: str | None) -> None:
    """A partner that has used up its window takes nothing from another's."""
    limiter = make(url)
    await charge(limiter, 200, "p1")
    assert admitted(await charge(limiter, 200, "p2")) == 120


async def test_the_301st_failure_blocks_the_address(make: Make, url: str | None) -> None:
    """300 failures are free, one more blocks; no other address and no partner is touched."""
    limiter = make(url, window_seconds=HOUR)
    answers = [await limiter.record_failure("192.0.2.1") for _ in range(300)]
    assert answers == [None] * 300
    assert not is_blocked(limiter, "192.0.2.1")
    refusal = await limiter.record_failure("192.0.2.1")
    known = limiter.refusal_of("192.0.2.1")
    assert refusal is not None
    assert known is not None
    assert known.reset_ms == refusal.reset_ms
    assert known.headers()["X-RateLimit-Limit"] == "300"
    assert 0 < known.retry_after_seconds <= HOUR
    assert not is_blocked(limiter, "192.0.2.2")
    assert await limiter.record_failure("192.0.2.2") is None
    assert (await limiter.charge("192.0.2.1")).remaining == 119


async def test_a_block_ends(make: Make, url: str | None, moment: Time) -> None:
    """The address is free again when the window has moved on."""
    limiter = make(url, failures_per_minute=2, window_seconds=HOUR)
    assert [await limiter.record_failure("a") is None for _ in range(3)] == [True, True, False]
    assert is_blocked(limiter, "a")
    moment.passes(HOUR)
    assert not is_blocked(limiter, "a")
    assert await limiter.record_failure("a") is None


def test_windows_that_ran_out_make_room() -> None:
    """The number of keys is bounded, and a window in use stays while unused ones go."""
    now = [0.0]
    windows = LocalWindows(limit=2, window_seconds=60, monotonic=lambda: now[0], keys_max=10)
    for number in range(1000):
        now[0] += 10
        windows.take("busy")
        windows.take(str(number))
    assert len(windows) <= 10
    assert not windows.take("busy").admitted


def test_a_flood_of_keys_is_bounded() -> None:
    """With more live keys than there is room for, the oldest go."""
    windows = LocalWindows(limit=1, window_seconds=60, keys_max=10)
    for number in range(100):
        windows.take(str(number))
    assert len(windows) == 10
    assert not windows.take("99").admitted


def test_places_that_ran_out_go() -> None:
    """Where no new key comes, too: held is what was given lately, not what all keys may have."""
    now, keys, limit = [0.0], 1000, 20
    windows = LocalWindows(limit=limit + 1, window_seconds=60, monotonic=lambda: now[0])
    for number in range(keys):
        windows.take(str(number))
    for number in range(keys):
        for _ in range(limit):
            now[0] += 0.03
            assert windows.take(str(number)).admitted
    assert windows.places <= 60 / 0.03 + keys / 2
    assert len(windows) <= keys / 2


def test_nobody_waits_longer_than_a_window() -> None:
    """Whatever a shared window answers."""
    now = [100.0]
    windows = LocalWindows(limit=2, window_seconds=60, monotonic=lambda: now[0])
    windows.take("p1")
    forever = Allowance(2, 0, 0, admitted=False, wait_ms=9e18)
    windows.learn("p1", forever, asked_at=now[0])
    assert not windows.take("p1").admitted
    now[0] += 60
    assert windows.take("p1").admitted


def test_a_clock_that_is_set_back() -> None:
    """Setting the clock moves the reset that is shown, never the window itself."""
    day, now = [2], [100.0]
    windows = LocalWindows(
        limit=1,
        window_seconds=60,
        clock=lambda: datetime(2026, 1, day[0], tzinfo=UTC),
        monotonic=lambda: now[0],
    )
    reset_ms = windows.take("p1").reset_ms
    day[0], now[0] = 1, 160.0
    again = windows.take("p1")
    assert (again.admitted, reset_ms - again.reset_ms) == (True, 86_400_000)


def test_headers() -> None:
    """An admitted request carries three headers, a refused one Retry-After beside them."""
    names = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
    admitted_headers = Allowance(120, 7, 99, admitted=True, wait_ms=5).headers()
    assert admitted_headers == dict(zip(names, ["120", "7", "99"], strict=True))
    refused = Allowance(120, 0, 99, admitted=False, wait_ms=1001).headers()
    assert [*refused] == [*names, "Retry-After"]
    assert refused["Retry-After"] == "2"
