"""Who is lent a connection, when there are fewer than who ask."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import asyncpg
import pytest

from service.ledger import connection_pool
from service.ledger.connection_pool import ConnectionPool


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
    async with asyncio.timeout(30):
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


async def test_closing_refuses_those_in_the_queue_and_an_attempt_under_way():
    """What was made meanwhile is closed."""
    server = Server()
    pool = server.pool(1, is_up=False)
    connecting, waiting = await _asking(pool, 2)
    closing = asyncio.create_task(pool.close())
    await _turns()
    server.up.set()
    await closing
    for one in (connecting, waiting):
        with pytest.raises(asyncpg.InterfaceError):
            await one
    assert [one.closed for one in server.made] == [True]


async def test_what_is_lent_can_be_closed_by_force():
    """Whoever has it sees a lost connection."""
    pool = Server().pool(1)
    lent = cast("Link", await pool.take())
    pool.terminate()
    assert lent.closed
