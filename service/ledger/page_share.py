"""What pages may take of a pool: half of its connections, and of these one for each visitor.

A statement of a page can take as long as its session's limits let it, and a person opens several
pages a second. Whatever pages there are, the others are left to partners' calls.
"""

import asyncio
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

from service.ledger.connection import LedgerConnection
from service.ledger.connection_pool import ConnectionPool

VISITORS_MAX: Final = 1
"""Connections of a pool that a visitor's pages have at once."""


class PageShare:
    """A pool's connections, as pages are lent them: each visitor in turn, and so all visitors.

    A pool of one connection has no other half: pages and calls wait for it alike.
    """

    def __init__(self, pool: ConnectionPool, size: int) -> None:
        """`size` is the pool's."""
        self._pool = pool
        self._places = asyncio.Semaphore(max(1, size // 2))
        self._by_visitor: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, visitors: Sequence[str]) -> "VisitorsTurn":
        """Return what lends a page one connection, once: when it is the turn of each visitor.

        They are in one order everywhere, people before partners, so that none wait for each other.
        """
        own = [
            self._by_visitor.setdefault(one, asyncio.Semaphore(VISITORS_MAX)) for one in visitors
        ]
        return VisitorsTurn(self._pool, [*own, self._places])


class VisitorsTurn:
    """Lends a page a connection; its places are free again when the connection is."""

    __slots__ = ("_places", "_pool")

    def __init__(self, pool: ConnectionPool, places: Sequence[asyncio.Semaphore]) -> None:
        """`places` are those of each visitor, then those of all pages."""
        self._pool = pool
        self._places = places

    async def take(self) -> LedgerConnection:
        """Return a connection, as `ConnectionPool.take` does, when there is a place in each."""
        held: list[asyncio.Semaphore] = []
        try:
            for one in self._places:
                await one.acquire()
                held.append(one)
            return await self._pool.take()
        except BaseException:  # raised again: also where its caller gave up
            for one in held:
                one.release()
            raise

    def give_back(self, connection: LedgerConnection) -> None:
        """Take the connection back, whether its caller gives it back or its server is done."""
        self._pool.give_back(connection)
        for one in self._places:
            one.release()

    def forget_statements(self) -> None:
        """Have each connection prepare its statements again, whoever is lent it."""
        self._pool.forget_statements()
