"""A connection whose statements outlive their caller, and how it is made.

A statement whose caller has given up continues in PostgreSQL. The connection waits for its end, and
keeps its place in its pool until then, so a process never has more backends than places.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import asyncpg
from asyncpg.protocol import protocol

from service.core.visitors import for_everybody
from service.ledger.dates import read_every_date

CONNECT_SECONDS_MAX: Final = 5.0
"""For one attempt to connect, for all callers: a busy server takes longer than a request may."""

SILENT_SECONDS_MAX: Final = 30.0
"""How long an unanswered statement is waited for before PostgreSQL is asked whether it works on
it. A request's ends in less by its own limits, but for a COMMIT that waits for a replica."""

_SOCKET_OPTIONS: Final[Sequence[tuple[str, int]]] = (
    ("SO_KEEPALIVE", 1),
    ("TCP_KEEPIDLE", 5),
    ("TCP_KEEPINTVL", 2),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 11_000),
)
"""A machine that has vanished is noticed after eleven seconds; one whose PostgreSQL is frozen, or
waits for a replica, still acknowledges. Where a platform lacks an option it is left out."""


FIXED_OID_END: Final = 10_000
"""Types below it have the same ids in every server: PostgreSQL's sources assign them."""


class Looked(NamedTuple):
    """The statement that looks types up; the driver reads its name."""

    name: str


_KNOWN_TYPES: Final[dict[frozenset[int], tuple[Any, Looked]]] = {}
"""What the driver looked up, such as arrays of uuids, by the ids that it asked for."""


# What the driver takes for an array. By its own abstract classes, it asks of each value of an array
# whether that is one, too, which takes as long as encoding it.
protocol.IterableABC = protocol.SizedABC = (list, tuple, set, frozenset)  # pyright: ignore[reportAttributeAccessIssue] - not declared


class ReachableConnection(asyncpg.Connection):
    """The driver's connection, with keep-alive."""

    def keep_alive(self) -> None:
        """Turn on TCP keepalive, so that the kernel notices a server that has vanished."""
        link = self._transport.get_extra_info("socket")
        if link is None or link.family not in (socket.AF_INET, socket.AF_INET6):
            return
        for name, value in _SOCKET_OPTIONS:
            level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
            if hasattr(socket, name):
                link.setsockopt(level, getattr(socket, name), value)


class LedgerConnection(ReachableConnection):
    """The driver's connection: statements whose caller has gone continue, and types are known."""

    _answered: "asyncio.Future[None] | None" = None

    async def _get_statement(
        self,
        query: str,
        timeout: float | None,  # noqa: ASYNC109 - the driver passes it
        *,
        named: str | bool | None = False,
        **more: Any,  # noqa: ANN401 - the driver's
    ) -> Any:  # noqa: ANN401 - the driver's
        """Return a statement, which has a name only where statements are prepared ahead.

        The driver's own method names those of cursors in any case. A transaction pooler leaves them
        on its server connection, where the next process begins with the same names: refused.
        """
        named = named if self._stmt_cache_enabled else False
        return await super()._get_statement(query, timeout, named=named, **more)

    async def _introspect_types(
        self,
        typeoids: Iterable[int],
        timeout: float | None,  # noqa: ASYNC109 - the driver passes it
    ) -> tuple[Any, Any]:
        """Return PostgreSQL's descriptions of its types, asking once in this process.

        The driver's own method asks in each connection, for each new set of types: ten milliseconds
        of the server's, and three round trips.
        """
        asked = frozenset(typeoids)
        if asked not in _KNOWN_TYPES:
            types, statement = await super()._introspect_types(asked, timeout)
            if max(asked) < FIXED_OID_END:
                _KNOWN_TYPES[asked] = types, Looked("earlier")
            return types, statement
        return _KNOWN_TYPES[asked]

    def _cancel_current_command(
        self, waiter: "asyncio.Future[None]", cancel_waiter: "asyncio.Future[None] | None" = None
    ) -> None:
        """Leave the statement running: the driver's own method would send a CancelRequest.

        A cancelled COMMIT that waits for a synchronous replica ends its wait, and stands: the claim
        is visible, a replay acknowledges it, and a failover loses it (SyncRepWaitForLSN in
        PostgreSQL's syncrep.c; statement_timeout does not end that wait, because it is disabled
        when the transaction commits). Everything else ends by the session's own limits.
        """
        waiter.set_result(None)  # "the request has been sent"
        self._answered = cancel_waiter  # done when the server has answered, or is lost

    def forget_statements(self) -> None:
        """Prepare statements again, and look types up, as the driver's own pool has its do."""
        self._drop_local_statement_cache()
        self._drop_local_type_cache()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way: no statement, no transaction.

        The driver still has a transaction of its own where a caller gave up as COMMIT was answered.
        """
        is_answered = self._answered is None or self._answered.done()
        is_in_transaction = self._top_xact is not None or self.is_in_transaction()
        return self.is_closed() or (is_answered and not is_in_transaction)

    async def settle(self) -> None:
        """Wait until the server has responded to the current statement; roll back."""
        if self._answered is not None:
            await asyncio.shield(self._answered)
        self._top_xact = None
        if not self.is_closed() and self.is_in_transaction():
            await self.execute("rollback")


Accept = Callable[[LedgerConnection], Awaitable[None]]
"""Checks a new connection; raises if it may not be used."""


class Lender(Protocol):
    """Who has lent a connection."""

    def give_back(self, connection: LedgerConnection, /) -> None:
        """Take it back, settled or closed."""
        ...


class Drain:
    """Connections whose caller has gone, and whose server has not responded yet."""

    def __init__(self, is_at_work: Callable[[int], Awaitable[bool]]) -> None:
        """`is_at_work` asks PostgreSQL whether a backend of a process id works."""
        self._is_at_work = is_at_work
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, lender: Lender, connection: LedgerConnection, *, reuse: bool) -> None:
        """Take a connection, and return at once; its lender gets it back when it is settled."""
        settling = self._settle(lender, connection, reuse=reuse)
        task = asyncio.create_task(settling, context=for_everybody())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop waiting for connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _settle(self, lender: Lender, connection: LedgerConnection, *, reuse: bool) -> None:
        """Keep the connection's place until the server has finished with it.

        It is closed if it cannot be used again, if the server does not respond to others either, or
        if it works on nothing: the place would otherwise be lost for ever.
        """
        try:
            while not await _settled(connection):
                if not await self._is_at_work(connection.get_server_pid()):
                    connection.terminate()
            if not reuse:
                await connection.close(timeout=CONNECT_SECONDS_MAX)
        except (
            OSError,
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,  # the server has said its last word, and not yet gone
        ):
            connection.terminate()
        finally:
            lender.give_back(connection)


async def _settled(connection: LedgerConnection) -> bool:
    """Return whether the server has answered in time; what is lost has, too."""
    try:
        async with asyncio.timeout(SILENT_SECONDS_MAX):
            await connection.settle()
    except TimeoutError:
        return False
    return True


async def connect(accept: Accept, url: str, **given: Any) -> LedgerConnection:  # noqa: ANN401 - the driver's
    """Connect with the driver's arguments; return a connection that may be used."""
    connection = await asyncpg.connect(url, connection_class=LedgerConnection, **given)
    connection.keep_alive()
    try:
        await read_every_date(connection)
        await accept(connection)
    except BaseException:  # also where the attempt is cancelled
        connection.terminate()
        raise
    return connection
