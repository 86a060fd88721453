"""The adapter to PostgreSQL: three pools for each ledger; the driver's errors end here.

Reads, writes and background work have separate connections. So a commit that waits for a replica
delays no read, and a mail server that hangs delays no request. Of each pool, pages have a share.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache, partial
from types import TracebackType
from typing import Final, TypeVar

import asyncpg
import structlog
from asyncpg.pgproto import pgproto

from service.core.visitors import visitors
from service.ledger.connection import (
    CONNECT_SECONDS_MAX,
    Accept,
    Drain,
    LedgerConnection,
    connect,
)
from service.ledger.connection_pool import ConnectionPool
from service.ledger.limits import BACKGROUND_SECONDS, Limits, local_limits
from service.ledger.page_share import PageShare, VisitorsTurn
from service.ledger.session import SESSION
from service.ledger.sql import Sql, queries

T = TypeVar("T")
RowId = pgproto.UUID
"""A UUID as rows have it: it is made, and written out, in a tenth of the time of Python's own."""
Row = asyncpg.Record
Connection = asyncpg.Connection

BACKGROUND_SIZE: Final = 4
"""Of what runs beside requests in one ledger, three can hang on others at once (mail, hand-overs,
the archive), and the sequencer still has a connection."""

BY_INDEX: Final = {"enable_seqscan": "off", "jit": "off"}
"""Plans use indexes, whatever tables contained when a session made the plans. The tables of a new
installation are empty at first, so plans would read whole tables for minutes, until PostgreSQL has
analysed them. Before PostgreSQL 18, a plan that has to read a whole table then counts as the
costliest of all, and would be compiled at each execution, for a tenth of a second."""

_PLANNED_ONCE: Final = {"plan_cache_mode": "force_generic_plan"}
"""Requests look up a few rows by index, whatever they ask for. For arrays of few values, PostgreSQL
would plan each time, which takes several times as long as the lookup."""

_PLANNED_AGAIN: Final = "set plan_cache_mode = force_custom_plan"
"""Citus can plan a statement that writes several tables only when it has the arguments."""

_READ_ONLY: Final = "default_transaction_read_only"

_SQL = queries("service.ledger")

log = structlog.get_logger()


class LedgerError(Exception):
    """Anything that goes wrong between us and the ledger."""


class LedgerUnavailable(LedgerError):
    """PostgreSQL is down, too slow or shutting down. Whether a write took effect is unknown."""


class WrongLogin(LedgerUnavailable):
    """A login has more rights than its ledger's work needs, and is refused. `str()` is one line."""


class NotMigrated(LedgerUnavailable):
    """The database has no tables of the ledger yet. `str()` is one line."""


class RightMissing(LedgerUnavailable):
    """PostgreSQL refuses a statement: a right is missing, or a policy would hide rows from it."""


class AlreadyExists(LedgerError):
    """A unique constraint refused a row; `constraint` names it."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class SchemaChanged(LedgerError):
    """A migration changed what a prepared statement returns. Nothing was written: try again."""


class Pool:
    """Connections to one ledger for one kind of work: never more than `size` backends."""

    def __init__(
        self, schema: str, size: int, limits: Limits, drain: Drain, accept: Accept
    ) -> None:
        """`limits` hold for each piece of work."""
        self.schema = schema
        self.size = size
        self.deadline_seconds = limits.deadline
        self._drain = drain
        self._accept = accept
        self._pool: ConnectionPool | None = None
        self._pages: PageShare | None = None
        # Set where a session cannot have the limits of its pool, and each transaction sets them.
        self._local_limits = False

    def open(
        self, url: str, settings: dict[str, str], *, is_pooled: bool, local_limits: bool
    ) -> None:
        """Make the pool, which connects at first use: a service starts without PostgreSQL.

        A transaction pooler may run each statement on another connection, so nothing is prepared
        then: PgBouncer before 1.21 has no other way, and it costs a round trip a statement.
        """
        self._local_limits = local_limits
        connecting = partial(
            connect,
            self._accept,
            url,
            timeout=CONNECT_SECONDS_MAX,
            server_settings=settings,
            statement_cache_size=0 if is_pooled else 100,
        )
        self._pool = ConnectionPool(connecting, self.size)
        self._pages = PageShare(self._pool, self.size)

    def connection(self, deadline: float | None = None) -> "_Lent":
        """Lend a connection, under one deadline for waiting and work together."""
        whose = visitors()
        lender = self.pool if not whose or self._pages is None else self._pages.of(whose)
        return _Lent(lender, self._drain, deadline or self.deadline_seconds)

    @asynccontextmanager
    async def transaction(self, deadline: float | None = None) -> AsyncGenerator[Connection, None]:
        """Lend a connection for one transaction: committed at the end, rolled back on an error.

        With a deadline of its own, it has limits of its own on the server, too.
        """
        async with self.connection(deadline) as connection, transaction_on(connection):
            if deadline is not None or self._local_limits:
                await connection.execute(local_limits(deadline or self.deadline_seconds))
            yield connection

    async def fetch(self, sql: Sql, *args: object) -> list[Row]:
        """Return the rows of one statement: one round trip."""
        begin = self.transaction if self._local_limits else self.connection
        async with begin() as connection:
            return await connection.fetch(sql.on(self.schema), *args)

    async def fetchrow(self, sql: Sql, *args: object) -> Row | None:
        """Return the first row of one statement, if there is one."""
        begin = self.transaction if self._local_limits else self.connection
        async with begin() as connection:
            return await connection.fetchrow(sql.on(self.schema), *args)

    async def close(self) -> None:
        """Close every connection, by force where one is still busy after two seconds."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        try:
            await asyncio.wait_for(pool.close(), 2)
        except _AWAY:
            pool.terminate()

    @property
    def pool(self) -> ConnectionPool:
        """The open pool."""
        if self._pool is None:
            raise LedgerUnavailable("the database has not been opened")
        return self._pool

    @property
    def connections(self) -> tuple[int, int]:
        """Return (open, idle) connections, for the metrics."""
        return (0, 0) if self._pool is None else self._pool.counts


class _Lent:
    """A connection for the length of a block; the driver's errors become ours at its end.

    A class instead of a generator, and no more in it than has to be: each statement begins here.
    """

    __slots__ = ("_connection", "_deadline", "_drain", "_pool")

    def __init__(self, pool: ConnectionPool | VisitorsTurn, drain: Drain, seconds: float) -> None:
        self._pool = pool
        self._drain = drain
        self._deadline = asyncio.timeout(seconds)

    async def __aenter__(self) -> LedgerConnection:
        await self._deadline.__aenter__()
        try:
            self._connection = await self._pool.take()
        except BaseException as error:  # raised again: also where the deadline has passed
            await self._ended(error)
            raise
        return self._connection

    async def __aexit__(
        self, _kind: object, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        connection, reuse = self._connection, not isinstance(error, _LOST)
        # Another task waits for the running statement, because this caller may be out of time.
        if reuse and connection.is_settled:
            self._pool.give_back(connection)
        else:
            self._drain.take(self._pool, connection, reuse=reuse)
        await self._ended(error)

    async def _ended(self, error: BaseException | None) -> None:
        """Raise what an error means to us; return where it is to be raised as it is."""
        try:
            await self._deadline.__aexit__(type(error) if error else None, error, None)
        except TimeoutError as passed:
            raise LedgerUnavailable(type(passed).__name__) from passed
        match error:
            case None:
                return
            case asyncpg.UniqueViolationError():
                # A field of the server's answer, which the driver sets and does not declare.
                constraint: str = getattr(error, "constraint_name", None) or ""
                raise AlreadyExists(constraint) from error
            case asyncpg.InvalidCachedStatementError() | asyncpg.OutdatedSchemaCacheError():
                self._pool.forget_statements()  # or each connection would refuse once
                raise SchemaChanged(type(error).__name__) from error
            case asyncpg.InsufficientPrivilegeError():
                raise RightMissing(type(error).__name__) from error
            case _ if isinstance(error, _AWAY):
                raise LedgerUnavailable(type(error).__name__) from error
            case _:
                return


_READ_WRITE: Final = "target_session_attrs=read-write"


class Database:
    """One schema, reached through its own pools under its own login (decision 5).

    `reads` look things up, each statement by itself, and cannot write. `writes` run the
    transactions of commands. `background` is for work that no request waits for: sequencer,
    followers, mail, checkpoints, the team's long commands.
    """

    def __init__(
        self,
        url: str,
        schema: str,
        *,
        pool_size: int,
        deadline: float,
        pooled: bool = False,
        network_encrypts: bool = False,
        make_pool: type[Pool] = Pool,
    ) -> None:
        """`pooled`: the URL leads through a transaction pooler.

        `network_encrypts`: somebody has said so, and sessions in the clear are as they should be.
        """
        self._network_encrypts = network_encrypts
        self._make_pool = make_pool
        self.schema = schema
        self.url = url
        """For software that makes its own connections."""
        self.is_pooled = pooled
        self._is_login_accepted = self._is_citus = False
        # The server that takes writes is found by what a session may do there by default: those of
        # `reads` become read-only afterwards.
        self._is_found_by_writing = _READ_WRITE in url and not pooled
        self._requests = Limits.of_requests(deadline)
        self._background = Limits.of_background(max(deadline, BACKGROUND_SECONDS))
        self._drain = Drain(self._is_at_work)
        self.reads = self._pool(pool_size, self._requests, self._accept_reads)
        self.writes = self._pool(pool_size, self._requests, self._accept)
        self.background = self._pool(BACKGROUND_SIZE, self._background, self._accept)

    async def open(self) -> None:
        """Make the pools."""
        requests = self._requests.settings | _PLANNED_ONCE
        read_only = {} if self._is_found_by_writing else {_READ_ONLY: "on"}
        self._open("reads", requests | read_only)
        self._open("writes", requests)
        self._open("background", self._background.settings)

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(pool.close() for pool in self.pools.values()))
        await self._drain.close()

    @property
    def pools(self) -> dict[str, Pool]:
        """The pools by their names."""
        return {"reads": self.reads, "writes": self.writes, "background": self.background}

    @property
    def shares_snapshots(self) -> bool:
        """Whether a session on the same server can read what another one's transaction sees.

        Nodes of Citus have snapshots of their own.
        """
        return not self._is_citus

    async def not_ahead(self, moment: datetime) -> datetime:
        """Return a moment of a process's clock, or the server's where that clock is ahead of it.

        What deletes goes by this: to a clock that is a month ahead, everything is old.
        """
        return min(moment, always(await self.background.fetchrow(_SQL.now))["now"])

    def _pool(self, size: int, limits: Limits, accept: Accept) -> Pool:
        return self._make_pool(self.schema, size, limits, self._drain, accept)

    def _open(self, name: str, settings: dict[str, str]) -> None:
        session: dict[str, str] = {"application_name": f"claim-ledger {self.schema} {name}"}
        if not self.is_pooled:
            session |= SESSION | BY_INDEX | settings
        # PgBouncer refuses other settings at the start: `alter role … set` has those of requests.
        self.pools[name].open(
            self.url,
            session,
            is_pooled=self.is_pooled,
            local_limits=self.is_pooled and name == "background",
        )

    async def _accept(self, connection: LedgerConnection) -> None:
        """Check the rights of the login, before its first use in this process.

        Raises WrongLogin where that is more than its ledger's work takes, and NotMigrated where
        there is nothing to work on yet: each new connection looks again.
        """
        if not self._is_login_accepted:
            sql = _SQL.login_excess.on(self.schema)
            row = always(await connection.fetchrow(sql, self.schema, timeout=CONNECT_SECONDS_MAX))
            if row["excess"]:
                raise WrongLogin(
                    f"the login {row['login']} {' and '.join(row['excess'])}, which the service may"
                    f" not: give {self.schema} the login that `claim-ledger migrate` makes for it"
                )
            if not row["is_migrated"]:
                raise NotMigrated(
                    f"the database has no tables of {self.schema}: run `claim-ledger migrate`"
                )
            self._is_login_accepted, self._is_citus = True, row["is_citus"]
            if row["is_in_the_clear"] and not self._network_encrypts:
                warn_of_plaintext(self.schema)
        if self._is_citus and not self.is_pooled:
            await connection.execute(_PLANNED_AGAIN, timeout=CONNECT_SECONDS_MAX)

    async def _accept_reads(self, connection: LedgerConnection) -> None:
        await self._accept(connection)
        if self._is_found_by_writing:
            await connection.execute(f"set {_READ_ONLY} = on", timeout=CONNECT_SECONDS_MAX)

    async def _is_at_work(self, server_pid: int) -> bool:
        try:
            row = await self.reads.fetchrow(_SQL.is_at_work, server_pid, self.is_pooled)
        except LedgerError:
            # The server does not respond to anybody. Or a pooler has no place left for the check.
            # If we closed the connection, the pooler would drop its backend, which continues, and
            # open another.
            return self.is_pooled
        return row is not None and row["is_at_work"]


@cache
def warn_of_plaintext(schema: str) -> None:
    """Log, once in a process, that a ledger's sessions leave the machine unencrypted."""
    log.warning("a session with PostgreSQL is not encrypted", ledger=schema)


class Reader:
    """Reads tables of one ledger, outside any transaction."""

    def __init__(self, database: Database) -> None:
        self._reads = database.reads


def always(found: T | None) -> T:
    """Return what a statement returned that always has a row, such as an aggregate."""
    if found is None:
        raise LookupError("no row where there is always one")
    return found


@asynccontextmanager
async def transaction_on(connection: Connection) -> AsyncGenerator[None, None]:
    """Commit at the end, roll back on an error; when cancelled, do neither.

    The driver's own context would wait for a PostgreSQL that hangs to acknowledge the cancelled
    statement before its ROLLBACK, past every deadline. The pool does that when the caller has gone.
    """
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    except Exception:  # and no BaseException, as said above
        await transaction.rollback()
        raise
    await transaction.commit()


def is_infrastructure_error(error: Exception) -> bool:
    """Return whether no row is to blame: PostgreSQL is away, a table or a right is missing."""
    return isinstance(error, (LedgerError, asyncpg.SyntaxOrAccessError, *_AWAY))


_LOST = (
    OSError,  # refused, reset, no route; TimeoutError is one of them
    asyncpg.InterfaceError,  # the connection or the pool is closed
    asyncpg.InternalClientError,  # the answer to COMMIT was lost
    asyncpg.PostgresConnectionError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, during a failover: the next may be none
)
"""After these, a connection is not used again."""
_AWAY = (
    *_LOST,
    asyncpg.OperatorInterventionError,  # shutting down, starting up, cancelled
    asyncpg.InsufficientResourcesError,  # disk full, too many connections, out of memory
    asyncpg.PostgresSystemError,  # an I/O error of its disk
    asyncpg.InvalidAuthorizationSpecificationError,  # the login's password was changed, perhaps
    asyncpg.InvalidCatalogNameError,  # the database is being restored, perhaps
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
)
