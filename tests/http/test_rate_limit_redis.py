"""One window over all workers in Redis, and what happens when Redis is away."""

import asyncio
import multiprocessing
import re
from asyncio import StreamReader, StreamWriter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
import structlog
from limits.aio.storage import RedisStorage

from service.http.rate_limit import redis
from service.http.rate_limit.limiter import RateLimiter
from tests.http.limiting import HOUR, Make, Time, admitted, charge, is_blocked
from tests.patience import PATIENCE_SECONDS, eventually, waiting
from tests.redis_server import RedisServer

TAKEOVER_SECONDS_MAX = 1.6

_together: list[Barrier] = []


def _begin_together(barrier: Barrier) -> None:
    _together.append(barrier)


def _worker(url: str) -> int:
    redis.TIMEOUT_SECONDS = PATIENCE_SECONDS  # in a process of its own

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
        f"async+{redis_server.url}", implementation="redispy", key_prefix="{claim-ledger}"
    )
    oldest, count = await storage.get_moving_window("rate:partner:p1", 120, 60)
    await storage.bridge.get_connection().aclose()
    assert (count, reset_ms) == (7, pytest.approx(oldest * 1000 + 60_000, abs=1))


async def test_addresses_are_not_in_redis(make: Make, redis_server: RedisServer) -> None:
    """An address is kept in Redis as a hash, and no longer than a window."""
    await make(redis_server.url).record_failure("192.0.2.1")
    keys = redis_server.command("KEYS", "*")
    assert b"{claim-ledger}:rate:failures:" in keys
    assert b"192.0.2.1" not in keys
    name = keys.split(b"\r\n")[2].decode()
    assert 0 < int(redis_server.command("PTTL", name)[1:]) <= 60_000


async def test_a_cluster_takes_a_batch_of_many_keys(make: Make, redis_server: RedisServer) -> None:
    """A script's keys have to be in one slot there; the probe's is in the same one."""
    redis_server.stop()
    redis_server.start(cluster=True)
    heard: list[bool] = []
    limiter = make(redis_server.url, on_degraded=heard.append, probe_seconds=0.01)
    for _ in range(3):
        await asyncio.gather(*(limiter.charge(f"p{number}") for number in range(20)))
    assert heard == []
    other = make(redis_server.url)
    assert [(await other.charge(f"p{number}")).remaining for number in range(20)] == [116] * 20


@pytest.mark.parametrize("others", [("SET", "x"), ("RPUSH", "x"), ("LPUSH", "x", "y")])
async def test_a_key_of_another_form_is_replaced(
    make: Make, redis_server: RedisServer, others: tuple[str, ...]
) -> None:
    """Something else under one partner's key: all partners are still counted together."""
    heard: list[bool] = []
    limiter = make(redis_server.url, on_degraded=heard.append)
    redis_server.command(others[0], "{claim-ledger}:rate:partner:p1", *others[1:])
    first = await asyncio.gather(limiter.charge("p1"), limiter.charge("p2"))
    second = await asyncio.gather(limiter.charge("p1"), limiter.charge("p2"))
    assert [one.remaining for one in (*first, *second)] == [119, 119, 118, 118]
    assert heard == []


async def test_a_clock_that_goes_back(make: Make, redis_server: RedisServer, moment: Time) -> None:
    """Places that lie in the future are free a window later, not sooner, and not later."""
    moment.redis = redis_server
    everyone = [make(redis_server.url, per_minute=2, window_seconds=HOUR) for _ in range(4)]
    moment.passes(3 * HOUR)
    assert admitted(await charge(everyone[0], 2)) == 2
    moment.passes(-3 * HOUR)
    for worker in everyone[1:3]:
        (refused,) = await charge(worker, 1)
        assert not refused.admitted
        assert refused.wait_ms <= HOUR * 1000
        moment.passes(HOUR / 2)
    assert admitted(await charge(everyone[3], 3)) == 2


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
    limiter = make(redis_server.url, on_degraded=heard.append, patient=fault == "kill")
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
    reason = {"kill": "ConnectionRefusedError", "pause": "TimeoutError"}[fault]
    assert [(log["event"], log["error_type"]) for log in logs] == [("rate_limit_degraded", reason)]
    assert admitted(await charge(limiter, 200, "p2")) == 120


@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_redis_comes_back(make: Make, redis_server: RedisServer, fault: str) -> None:
    """When Redis is back the windows are shared again, and no process gets more than the limit."""
    heard: list[bool] = []
    one = make(
        redis_server.url, on_degraded=heard.append, probe_seconds=0.1, patient=fault == "kill"
    )
    getattr(redis_server, fault)()
    assert admitted(await charge(one, 100)) == 100
    await asyncio.sleep(0.4)
    assert heard == [True]
    redis_server.resume() if fault == "pause" else redis_server.start()
    await eventually(lambda: heard == [True, False])
    assert admitted(await charge(one, 100)) == 20
    assert admitted(await charge(one, 100, "p2")) == 100
    assert admitted(await charge(make(redis_server.url), 100, "p2")) == 20


async def test_redis_comes_back_as_another_server(
    make: Make, redis_server: RedisServer, tmp_path: Path
) -> None:
    """After a failover its name leads to another one, and the old one goes on as a replica."""
    (tmp_path / "other").mkdir()
    other, heard, port = RedisServer(tmp_path / "other"), list[bool](), redis_server.port
    other.start()

    async def forward(reader: StreamReader, writer: StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copied(reader, there[1]), _copied(there[0], writer))

    async with await asyncio.start_server(forward, "127.0.0.1", 0) as name:
        address = name.sockets[0].getsockname()[1]
        url = f"redis://127.0.0.1:{address}/0"
        limiter = make(url, on_degraded=heard.append, probe_seconds=0.05)
        await charge(limiter, 2)
        redis_server.command("REPLICAOF", "127.0.0.1", str(other.port))
        port = other.port
        await eventually(lambda: _is_heard(limiter, heard, [True, False]))
        await limiter.close()
    other.stop()


async def _is_heard(limiter: RateLimiter, heard: list[bool], what: list[bool]) -> bool:
    await limiter.charge("p1")
    return heard == what


async def _copied(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
    writer.close()


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


@pytest.mark.parametrize(
    ("fault", "mended"),
    [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
    ],
    ids=["full", "replica"],
)
async def test_a_redis_that_cannot_be_written_stays_away(
    make: Make, redis_server: RedisServer, fault: str, mended: str
) -> None:
    """However many places the probes of earlier outages took, and whenever those expire.

    A full Redis refuses a script by its first write alone, and not where a place expired.
    """
    heard: list[bool] = []
    limiter = make(
        redis_server.url,
        per_minute=100_000,
        on_degraded=heard.append,
        probe_seconds=0.01,
        window_seconds=0.3,
    )
    # The first two are within a window, the last lasts for several.
    for outages, probes in enumerate((5, 5, 100), start=1):
        redis_server.command(*fault.split())
        seen = _scripts_run(redis_server) + probes
        await eventually(lambda seen=seen: _is_probed(limiter, redis_server, seen))
        assert heard == [True, False] * (outages - 1) + [True]
        redis_server.command(*mended.split())
        await eventually(lambda outages=outages: heard == [True, False] * outages)


async def _is_probed(limiter: RateLimiter, server: RedisServer, run: int) -> bool:
    await limiter.charge("p1")
    return _scripts_run(server) >= run


def _scripts_run(server: RedisServer) -> int:
    stats = server.command("INFO", "commandstats").decode()
    found = re.search(r"cmdstat_evalsha:calls=(\d+)", stats)
    return int(found[1]) if found else 0


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
