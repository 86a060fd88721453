"""Connections that are kept open, each lent to one caller at a time.

The driver's own pool takes more of the processor for lending a connection than for the statement
that it is lent for: a proxy, a task and three futures each time (docs/performance.md).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import asyncpg

from service.ledger.connection import LedgerConnection

IDLE_SECONDS_MAX: Final = 300.0
"""A connection that nobody has needed for so long is closed."""


class ConnectionPool:
    """At most `size` connections, attempts to connect included.

    Who waits for one gets it in turn, and the most recently used one is lent first, so that those
    which are not needed become old. Connections are made when they are needed: a service starts
    without PostgreSQL.
    """

    def __init__(self, connect: Callable[[], Awaitable[LedgerConnection]], size: int) -> None:
        """Begin empty; `connect` makes a connection."""
        self._connect = connect
        self._size = size
        self._open: set[LedgerConnection] = set()
        self._places = 0  # taken, by a connection or by an attempt to make one
        self._idle: deque[tuple[LedgerConnection, float]] = deque()
        self._waiting: deque[asyncio.Future[LedgerConnection | None]] = deque()
        self._retiring: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._returned = asyncio.Event()

    @property
    def counts(self) -> tuple[int, int]:
        """How many connections are open, and how many of these are idle."""
        is_open = sum(not connection.is_closed() for connection in self._open)
        return is_open, sum(not connection.is_closed() for connection, _ in self._idle)

    async def take(self) -> LedgerConnection:
        """Return a connection, once there is one; raises what connecting raises.

        Raises InterfaceError if the pool is closed meanwhile.
        """
        if self._is_closing:
            raise asyncpg.InterfaceError("the pool is closed")
        while self._idle:
            connection, _ = self._idle.pop()
            if not connection.is_closed():
                return connection
            self._drop(connection)
        if self._places < self._size:
            self._places += 1
        else:
            passed_on = await self._turn()
            if passed_on is not None:
                return passed_on
        return await self._made()

    def give_back(self, connection: LedgerConnection) -> None:
        """Take a connection back: nothing may be under way on it, unless it has been closed."""
        if connection.is_closed():
            self._open.discard(connection)
            self._pass_on(None)
        else:
            self._pass_on(connection)

    def retire(self) -> None:
        """Close the connections that are idle now."""
        while self._idle:
            connection, _ = self._idle.pop()
            connection.terminate()
            self._drop(connection)

    async def close(self) -> None:
        """Close each connection as soon as it is back; refuse who waits for one."""
        self._is_closing = True
        for turn in self._waiting:
            if not turn.done():
                turn.set_exception(asyncpg.InterfaceError("the pool is closed"))
        if self._retiring is not None:
            self._retiring.cancel()
        while self._places:
            self._returned.clear()
            while self._idle:
                connection, _ = self._idle.pop()
                await connection.close()
                self._drop(connection)
            if self._places:
                await self._returned.wait()

    def terminate(self) -> None:
        """Close every connection by force, busy ones too."""
        for connection in self._open:
            connection.terminate()

    async def _turn(self) -> LedgerConnection | None:
        """Wait for a connection; None: for the place of one, to be filled by the caller."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            connection = await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self._waiting.remove(turn)
            elif turn.exception() is None:  # its turn came at the moment when it gave up
                self._pass_on(turn.result())
            raise
        if connection is not None and connection.is_closed():
            self._open.discard(connection)
            return None
        return connection

    async def _made(self) -> LedgerConnection:
        try:
            connection = await self._connect()
        except BaseException:
            self._pass_on(None)
            raise
        self._open.add(connection)
        if self._is_closing:
            connection.terminate()
            self.give_back(connection)
            raise asyncpg.InterfaceError("the pool is closed")
        return connection

    def _pass_on(self, connection: LedgerConnection | None) -> None:
        """Give a connection, or the place of one that has gone, to whoever has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        if connection is None:
            self._places -= 1
        else:
            loop = asyncio.get_running_loop()
            self._idle.append((connection, loop.time()))
            if self._retiring is None:
                self._retiring = loop.call_later(IDLE_SECONDS_MAX, self._retire)
        self._returned.set()

    def _drop(self, connection: LedgerConnection) -> None:
        self._open.discard(connection)
        self._places -= 1

    def _retire(self) -> None:
        """Close what has been idle for too long; look again when the next one may have been."""
        self._retiring = None
        loop = asyncio.get_running_loop()
        while self._idle:
            connection, since = self._idle[0]
            due = since + IDLE_SECONDS_MAX
            if due > loop.time() and not connection.is_closed():
                self._retiring = loop.call_at(due, self._retire)
                return
            self._idle.popleft()
            connection.terminate()
            self._drop(connection)
