"""Who is lent a connection, when there are fewer than who ask."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import asyncpg
import pytest

from service.ledger import connection_pool
from service.ledger.connection_pool import ConnectionPool
from tests.patience import PATIENCE_SECONDS
from tests.tables import every_row


@dataclass(eq=False)
class Link:
    """A connection that does nothing."""

    closed: bool = False

    def is_closed(self):
        """Return whether it has been closed."""
        return self.closed

    def terminate(self):
        """Close it by force."""
        self.closed = True

    async def close(self):
        """Close it in order."""
        self.closed = True


@dataclass
class Server:
    """Makes connections once it is up, or fails as often as it is told."""

    failures: int = 0
    made: list[Link] = field(default_factory=list[Link])
    up: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> Any:
        """Return a connection."""
        await self.up.wait()
        if self.failures:
            self.failures -= 1
            raise ConnectionRefusedError
        self.made.append(Link())
        return self.made[-1]

    def pool(self, size, *, is_up=True):
        """Return a pool of connections to it."""
        if is_up:
            self.up.set()
        return ConnectionPool(self.connect, size)


async def _closed(link):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not link.closed:  # noqa: ASYNC110 - by a timer of the pool's
            await asyncio.sleep(0.01)


async def _asking(pool, count):
    """Return so many who ask, each behind the one before."""
    asking = []
    for _ in range(count):
        asking.append(asyncio.create_task(pool.take()))
        await asyncio.sleep(0)
    return asking


async def _turns():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_connection_that_was_used_last_is_lent_first():
    """So those that are not needed become old."""
    pool = Server().pool(3)
    first, second = await pool.take(), await pool.take()
    pool.give_back(first)
    pool.give_back(second)
    assert await pool.take() is second
    assert pool.counts == (2, 1)


async def test_who_waits_longest_is_next():
    """There are never more connections than places."""
    server = Server()
    pool = server.pool(1)
    lent = await pool.take()
    asking = await _asking(pool, 3)
    for one in asking:
        pool.give_back(lent)
        await _turns()
        assert one.done()
        assert one.result() is lent
    assert len(server.made) == 1


async def test_the_place_of_a_lost_connection_is_filled_by_who_waits():
    """Lost while it is lent, in the moment when it is passed on, or while nobody has it."""
    server = Server()
    pool = server.pool(1)
    lent = await pool.take()
    (asking,) = await _asking(pool, 1)
    lent.terminate()
    pool.give_back(lent)
    second = await asking
    assert second is not lent

    (asking,) = await _asking(pool, 1)
    pool.give_back(second)
    second.terminate()
    third = await asking
    assert third is not second

    pool.give_back(third)
    third.terminate()
    assert pool.counts == (0, 0)
    fourth = await pool.take()
    assert (fourth is third, pool.counts) == (False, (1, 0))


async def test_an_attempt_that_fails_gives_its_place_to_the_next():
    """Everyone who waits makes an attempt of its own, one after the other."""
    server = Server(failures=2)
    pool = server.pool(1)
    asking = await _asking(pool, 3)
    await asyncio.wait(asking)
    assert [type(one.exception()) for one in asking[:2]] == [ConnectionRefusedError] * 2
    assert asking[2].result() is server.made[0]


@pytest.mark.parametrize("is_passed_on", [True, False])
async def test_who_gives_up_does_not_keep_a_connection(is_passed_on):
    """Also where its turn came in the same moment."""
    pool = Server().pool(1)
    lent = await pool.take()
    asking = await _asking(pool, 2)
    if is_passed_on:
        pool.give_back(lent)
        asking[0].cancel()
    else:
        asking[0].cancel()
        await _turns()
        pool.give_back(lent)
    assert await asking[1] is lent
    pool.give_back(lent)
    assert pool.counts == (1, 1)


async def test_what_nobody_needs_is_closed(monkeypatch):
    """After a while, and not before."""
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS_MAX", 0.05)
    server = Server()
    pool = server.pool(2)
    first, second = await pool.take(), await pool.take()
    pool.give_back(first)
    await _closed(first)
    pool.give_back(second)
    assert not second.is_closed()
    await _closed(second)
    assert pool.counts == (0, 0)
    assert await pool.take() is server.made[2]


async def test_closing_waits_for_what_is_lent_and_refuses_who_waits():
    """Nobody gets a connection of a closed pool."""
    pool = Server().pool(2)
    idle, lent = await pool.take(), await pool.take()
    pool.give_back(idle)
    closing = asyncio.create_task(pool.close())
    await _turns()
    assert (idle.is_closed(), closing.done()) == (True, False)
    pool.give_back(lent)
    await closing
    assert lent.is_closed()
    with pytest.raises(asyncpg.InterfaceError):
        await pool.take()


async def test_closing_refuses_those_in_the_queue_and_ends_attempts():
    """Also one that has not begun yet, and nothing is left open."""
    server = Server()
    pool = server.pool(2, is_up=False)
    asking = await _asking(pool, 1)
    asking += [asyncio.create_task(pool.take()), asyncio.create_task(pool.take())]
    await asyncio.sleep(0)
    closing = asyncio.create_task(pool.close())
    await closing
    server.up.set()
    await _turns()
    assert [type(one.exception()) for one in asking] == [asyncpg.InterfaceError] * 3
    assert (server.made, pool.counts) == ([], (0, 0))


async def test_what_was_made_for_somebody_who_has_gone_is_kept_for_others(monkeypatch):
    """It is counted and retired like every other, and nobody begins another attempt meanwhile."""
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS_MAX", 0.05)
    server = Server()
    pool = server.pool(2, is_up=False)
    (gone,) = await _asking(pool, 1)
    gone.cancel()
    await _turns()
    (asking,) = await _asking(pool, 1)
    server.up.set()
    await asking
    assert len(server.made) == 1
    server.up.clear()
    (gone,) = await _asking(pool, 1)
    gone.cancel()
    server.up.set()
    await _turns()
    assert pool.counts == (2, 1)
    await _closed(server.made[1])
    assert pool.counts == (1, 0)


async def test_a_full_server_refuses_nobody_who_can_wait_for_another(monkeypatch):
    """It is left alone for a while; if no connection is left, it is asked again at once."""
    monkeypatch.setattr(connection_pool, "REFUSED_SECONDS", 0.05)
    server = Server()
    pool = server.pool(3)
    lent = await pool.take()
    server.failures = 2
    asking = await _asking(pool, 2)
    await _turns()
    assert (server.failures, [one.done() for one in asking]) == (0, [False, False])
    asking += await _asking(pool, 1)
    pool.give_back(lent)
    await _turns()
    assert (asking[0].result() is lent, len(server.made)) == (True, 1)
    await asyncio.wait(asking, timeout=PATIENCE_SECONDS)  # after the rest
    assert [one.result() for one in asking[1:]] == server.made[1:]

    for one in asking:
        pool.give_back(one.result())
    for one in server.made:
        one.terminate()
    server.failures = 1
    (refused,) = await _asking(pool, 1)
    await asyncio.wait([refused])
    assert isinstance(refused.exception(), ConnectionRefusedError)
    assert await pool.take() is server.made[3]


class History:
    """What happens to a pool by chance: callers come and go, and the server closes connections."""

    def __init__(self, seed):
        self.drawn = random.Random(seed)  # noqa: S311 - which history it is
        self.size = self.drawn.randint(1, 3)
        self.pool = ConnectionPool(self.connect, self.size)
        self.links: list[Link] = []
        self.lent = set[Link]()
        self.calls: list[asyncio.Task[None]] = []

    async def pauses(self, most):
        """Let others go on, so many times at most."""
        for _ in range(self.drawn.randint(0, most)):
            await asyncio.sleep(0)

    async def connect(self) -> Any:
        """Return a connection, or refuse one."""
        await self.pauses(4)
        if self.drawn.random() < 0.2:
            raise ConnectionRefusedError
        self.links.append(Link())
        return self.links[-1]

    async def call(self):
        """Use a connection for a moment, and perhaps lose it; nobody else has it."""
        await self.pauses(3)
        with suppress(ConnectionRefusedError, TimeoutError):
            async with asyncio.timeout(self.drawn.choice([None, None, self.drawn.random() / 2000])):
                one = cast("Link", await self.pool.take())
            assert one not in self.lent
            self.lent.add(one)
            try:
                await self.pauses(3)
                one.closed |= self.drawn.random() < 0.2
            finally:
                self.lent.remove(one)
                self.pool.give_back(cast("Any", one))

    async def happens(self):
        """Do something, and look whether there are more connections than places."""
        what = self.drawn.random()
        if what < 0.5:
            self.calls.append(asyncio.create_task(self.call()))
        elif what < 0.75 and self.calls:
            self.drawn.choice(self.calls).cancel()
        elif what < 0.85 and self.links:
            self.drawn.choice(self.links).terminate()
        elif what < 0.88:
            self.pool.retire()
        await self.pauses(2)
        assert sum(not one.closed for one in self.links) <= self.size

    async def ends(self):
        """Wait until nobody uses the pool; then each of its places can be used."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            ends = await asyncio.gather(*self.calls, return_exceptions=True)
        assert {type(end) for end in ends} <= {type(None), asyncio.CancelledError}
        taken = set[object]()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(taken) < self.size:
                with suppress(ConnectionRefusedError):
                    taken.add(await self.pool.take())
        assert self.pool.counts == (self.size, 0)


@pytest.mark.parametrize("idle_seconds", [0.0, 0.0002, 300.0])
async def test_no_place_is_lost_whatever_happens(idle_seconds, monkeypatch):
    """In a hundred histories, each of a seed of its own."""
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS_MAX", idle_seconds)
    monkeypatch.setattr(connection_pool, "REFUSED_SECONDS", 0.0005)
    with every_row() as row:
        for seed in range(100):
            with row(f"seed {seed}"):
                history = History(seed)
                for _ in range(history.drawn.randint(10, 60)):
                    await history.happens()
                await history.ends()


async def test_what_is_lent_can_be_closed_by_force():
    """Whoever has it sees a lost connection."""
    pool = Server().pool(1)
    lent = cast("Link", await pool.take())
    pool.terminate()
    assert lent.closed
