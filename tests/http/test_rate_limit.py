import asyncio
import math
import multiprocessing
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier

import pytest
import structlog
from limits.aio.storage import RedisStorage

from service.http.rate_limit.limiter import Allowance, RateLimiter
from service.http.rate_limit.windows import LocalWindows
from tests.patience import eventually, waiting
from tests.redis_server import RedisServer

Make = Callable[..., RateLimiter]
TAKEOVER_SECONDS_MAX = 1.6
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
                "for _, key in ipairs(redis.call('KEYS', 'claim-ledger:rate:*')) do "
                "for i, at in ipairs(redis.call('LRANGE', key, 0, -1)) do "
                "redis.call('LSET', key, i - 1, string.format('%.6f', at - ARGV[1])) end end"
            )
            self.redis.command("EVAL", age, "0", str(seconds))


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


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.server)])
def url(request: pytest.FixtureRequest, moment: Time) -> str | None:
    """Return where the windows are kept: the contract holds for both."""
    if request.param == "memory":
        return None
    moment.redis = request.getfixturevalue("redis_server")
    return moment.redis.url


async def charge(limiter: RateLimiter, times: int, partner_id: str = "p1") -> list[Allowance]:
    """Return the allowances of so many charges at once."""
    return await asyncio.gather(*(limiter.charge(partner_id) for _ in range(times)))


def is_blocked(limiter: RateLimiter, address: str) -> bool:
    """Return whether the process knows the address to be over its limit."""
    return limiter.refusal_of(address) is not None


def admitted(allowances: list[Allowance]) -> int:
    """Return how many were admitted."""
    return sum(allowance.admitted for allowance in allowances)


# The contract of both


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


# One window over all workers


_together: list[Barrier] = []


def _begin_together(barrier: Barrier) -> None:
    _together.append(barrier)


def _worker(url: str) -> int:
    async def run() -> int:
        limiter = RateLimiter(redis_url=url, per_minute=120, window_seconds=HOUR)
        _together[0].wait()
        count = admitted(await charge(limiter, 250))
        await limiter.close()
        return count

    return asyncio.run(run())


def test_four_processes_share_one_window(redis_server: RedisServer) -> None:
    """Of 1,000 charges at once through 4 processes exactly 120 are admitted."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        4, mp_context=spawn, initializer=_begin_together, initargs=(spawn.Barrier(4),)
    ) as pool:
        runs = [pool.submit(_worker, redis_server.url) for _ in range(4)]
        assert sum(run.result() for run in runs) == 120


async def test_another_worker_learns_of_a_block(make: Make, redis_server: RedisServer) -> None:
    """Failures are counted over all workers; each knows of the block from its next failure on."""
    one, two = (make(redis_server.url, failures_per_minute=3) for _ in range(2))
    for _ in range(4):
        await one.record_failure("a")
    assert (is_blocked(one, "a"), is_blocked(two, "a")) == (True, False)
    assert await two.record_failure("a") is not None
    assert is_blocked(two, "a")


async def test_a_refusal_is_remembered(make: Make, redis_server: RedisServer) -> None:
    """A partner that others have used up is refused without asking Redis until the reset."""
    one, two = (make(redis_server.url, per_minute=5) for _ in range(2))
    await charge(one, 5)
    refused = await two.charge("p1")
    redis_server.pause()
    again = await two.charge("p1")
    redis_server.resume()
    assert (refused.admitted, again.admitted) == (False, False)
    assert again.reset_ms == refused.reset_ms


async def test_the_windows_are_those_of_limits(make: Make, redis_server: RedisServer) -> None:
    """The library reads the same count and the same oldest moment from the same key."""
    reset_ms = (await charge(make(redis_server.url), 7))[-1].reset_ms
    storage = RedisStorage(
        f"async+{redis_server.url}", implementation="redispy", key_prefix="claim-ledger"
    )
    oldest, count = await storage.get_moving_window("rate:partner:p1", 120, 60)
    await storage.bridge.get_connection().aclose()
    assert (count, reset_ms) == (7, pytest.approx(oldest * 1000 + 60_000, abs=1))


async def test_addresses_are_not_in_redis(make: Make, redis_server: RedisServer) -> None:
    """An address is kept in Redis as a hash, and no longer than a window."""
    await make(redis_server.url).record_failure("192.0.2.1")
    keys = redis_server.command("KEYS", "*")
    assert b"claim-ledger:rate:failures:" in keys
    assert b"192.0.2.1" not in keys
    name = keys.split(b"\r\n")[2].decode()
    assert 0 < int(redis_server.command("PTTL", name)[1:]) <= 60_000


# Bad days of Redis


async def test_flushed_scripts(make: Make, redis_server: RedisServer) -> None:
    """Redis forgets its scripts and data: the next charge is answered as if it were the first."""
    heard: list[bool] = []
    limiter = make(redis_server.url, on_degraded=heard.append)
    await charge(limiter, 2)
    redis_server.command("SCRIPT", "FLUSH")
    redis_server.command("FLUSHALL")
    assert ((await limiter.charge("p1")).remaining, heard) == (119, [])


async def test_a_restart_goes_unnoticed(make: Make, redis_server: RedisServer) -> None:
    """Redis restarted between two charges is no outage."""
    heard: list[bool] = []
    limiter = make(redis_server.url, on_degraded=heard.append)
    await charge(limiter, 2)
    redis_server.stop()
    redis_server.start()
    assert ((await limiter.charge("p1")).remaining, heard) == (119, [])


@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_memory_takes_over(make: Make, redis_server: RedisServer, fault: str) -> None:
    """Redis refuses or hangs: charges are answered at once, and the process keeps to the limit."""
    heard: list[bool] = []
    limiter = make(redis_server.url, on_degraded=heard.append)
    with structlog.testing.capture_logs() as logs:
        before = await charge(limiter, 50)
        getattr(redis_server, fault)()
        with waiting() as waited_seconds:
            during = await charge(limiter, 30)
            assert waited_seconds() <= TAKEOVER_SECONDS_MAX
        with waiting() as waited_seconds:
            after = await charge(limiter, 500)
            assert waited_seconds() <= 0.2
    assert admitted(before + during + after) == 120
    assert heard == [True]
    assert [log["event"] for log in logs] == ["rate_limit_degraded"]
    assert admitted(await charge(limiter, 200, "p2")) == 120


@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_redis_comes_back(make: Make, redis_server: RedisServer, fault: str) -> None:
    """When Redis is back the windows are shared again, and no process gets more than the limit."""
    heard: list[bool] = []
    one = make(redis_server.url, on_degraded=heard.append, probe_seconds=0.1)
    getattr(redis_server, fault)()
    assert admitted(await charge(one, 100)) == 100
    await asyncio.sleep(0.4)
    assert heard == [True]
    redis_server.resume() if fault == "pause" else redis_server.start()
    await eventually(lambda: heard == [True, False])
    assert admitted(await charge(one, 100)) == 20
    assert admitted(await charge(one, 100, "p2")) == 100
    assert admitted(await charge(make(redis_server.url), 100, "p2")) == 20


async def test_redis_away_from_the_start(make: Make, redis_server: RedisServer) -> None:
    """A worker that starts without its Redis limits by itself from the first charge on."""
    redis_server.stop()
    assert admitted(await charge(make(redis_server.url), 300)) == 120


async def test_a_redis_that_answers_with_errors(make: Make, redis_server: RedisServer) -> None:
    """A Redis that refuses to write counts as away, however well it answers a PING."""
    heard: list[bool] = []
    limiter = make(redis_server.url, on_degraded=heard.append, probe_seconds=0.05)
    redis_server.command("CONFIG", "SET", "min-replicas-to-write", "1")
    assert admitted(await charge(limiter, 300)) == 120
    await asyncio.sleep(0.2)
    assert heard == [True]
    redis_server.command("CONFIG", "SET", "min-replicas-to-write", "0")
    await eventually(lambda: heard == [True, False])


async def test_closing_in_the_middle(make: Make, redis_server: RedisServer) -> None:
    """Charges under way are answered when the limiter closes, whether they were sent or not."""
    limiter = make(redis_server.url)
    await limiter.charge("p1")
    redis_server.pause()
    sent = asyncio.create_task(limiter.charge("p1"))
    await asyncio.sleep(0.05)
    waiting = asyncio.create_task(limiter.charge("p1"))
    await asyncio.sleep(0)
    await limiter.close()
    assert sorted([(await sent).remaining, (await waiting).remaining]) == [117, 118]


async def test_a_request_that_goes_away(make: Make, redis_server: RedisServer) -> None:
    """A cancelled charge does not spoil those that travel with it."""
    limiter = make(redis_server.url)
    gone, kept = (asyncio.create_task(limiter.charge("p1")) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await kept).remaining == 118


# The windows of one process


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


def test_a_limit_below_one_is_refused() -> None:
    """A limit that would refuse everything is a mistake of the settings."""
    with pytest.raises(ValueError, match="at least 1"):
        RateLimiter(redis_url=None, per_minute=0)
