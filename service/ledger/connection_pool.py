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
REFUSED_SECONDS: Final = 1.0
"""A server that has refused one more connection is not asked for another while some are open."""


class ConnectionPool:
    """At most `size` connections, attempts to connect included.

    Whoever waits gets the first connection that is free, whether it was given back or has just been
    made, in turn. Connections are made when they are needed: a service starts without PostgreSQL.
    The one that was used last is lent first, so that those which are not needed become old.
    """

    def __init__(self, connect: Callable[[], Awaitable[LedgerConnection]], size: int) -> None:
        """Begin empty; `connect` makes a connection."""
        self._connect = connect
        self._size = size
        self._places = 0  # taken, by a connection or by an attempt to make one
        self._open: set[LedgerConnection] = set()
        self._idle: deque[tuple[LedgerConnection, float]] = deque()
        self._attempts: set[asyncio.Future[LedgerConnection]] = set()
        self._waiting: deque[asyncio.Future[LedgerConnection]] = deque()
        self._retiring: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._returned = asyncio.Event()

    @property
    def counts(self) -> tuple[int, int]:
        """How many connections are open, and how many of these are idle."""
        is_open = sum(not connection.is_closed() for connection in self._open)
        return is_open, sum(not connection.is_closed() for connection, _ in self._idle)

    async def take(self) -> LedgerConnection:
        """Return a connection, once there is one.

        Raises what connecting raises, where no connection is open that could be waited for, and
        InterfaceError if the pool is closed meanwhile.
        """
        while True:
            if self._is_closing:
                raise asyncpg.InterfaceError("the pool is closed")
            connection = self._idle.pop()[0] if self._idle else await self._turn()
            if not connection.is_closed():
                return connection
            self._drop(connection)

    def give_back(self, connection: LedgerConnection) -> None:
        """Take a connection back: nothing may be under way on it, unless it has been closed."""
        if connection.is_closed():
            self._drop(connection)
            self._connect_more()
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        loop = asyncio.get_running_loop()
        self._idle.append((connection, loop.time()))
        self._returned.set()
        if self._retiring is None:
            self._retiring = loop.call_later(IDLE_SECONDS_MAX, self._retire)

    def forget_statements(self) -> None:
        """Have each connection prepare its statements again: the schema has changed."""
        for connection in self._open:
            connection.forget_statements()

    def retire(self) -> None:
        """Close the connections that are idle now."""
        while self._idle:
            connection, _ = self._idle.pop()
            connection.terminate()
            self._drop(connection)

    async def close(self) -> None:
        """Close each connection as soon as it is back; refuse who waits for one."""
        self._is_closing = True
        while self._waiting:
            self._refuse(asyncpg.InterfaceError("the pool is closed"))
        for timer in (self._retiring, self._resting):
            if timer is not None:
                timer.cancel()
        for attempt in self._attempts:
            attempt.cancel()
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

    async def _turn(self) -> LedgerConnection:
        """Wait for a connection, which may have been closed by the time that it is returned."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._connect_more()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self._waiting.remove(turn)
            elif turn.exception() is None:  # its turn came at the moment when it gave up
                self.give_back(turn.result())
            raise

    def _connect_more(self) -> None:
        """Begin an attempt for each who waits, as far as there are places."""
        while self._places < self._size and not self._is_resting():
            waiting = sum(not turn.done() for turn in self._waiting)
            if len(self._attempts) >= waiting:
                return
            self._places += 1
            attempt = asyncio.ensure_future(self._connect())
            self._attempts.add(attempt)
            attempt.add_done_callback(self._attempted)

    def _is_resting(self) -> bool:
        return self._is_closing or (self._resting is not None and self.counts[0] > 0)

    def _attempted(self, attempt: "asyncio.Future[LedgerConnection]") -> None:
        """Lend what was made to whoever has waited longest by now; or tell them why it was not."""
        self._attempts.discard(attempt)
        refused = None if attempt.cancelled() else attempt.exception()
        if not attempt.cancelled() and refused is None:
            made = attempt.result()
            self._open.add(made)
            if self._is_closing:
                made.terminate()
            self.give_back(made)
            return
        self._places -= 1
        self._returned.set()
        if self.counts[0]:  # the server is full, but who waits gets what others give back
            loop = asyncio.get_running_loop()
            self._resting = self._resting or loop.call_later(REFUSED_SECONDS, self._rested)
        elif refused is not None:
            self._refuse(refused)
            self._connect_more()

    def _rested(self) -> None:
        self._resting = None
        self._connect_more()

    def _refuse(self, error: BaseException) -> None:
        """Raise an error where somebody has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)
                return

    def _drop(self, connection: LedgerConnection) -> None:
        self._open.discard(connection)
        self._places -= 1
        self._returned.set()

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
