"""The adapter to PostgreSQL: a pool per ledger; the driver's errors end here."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from service.ledger.sql import Sql

Row = asyncpg.Record
Connection = PoolConnectionProxy | asyncpg.Connection

DEADLINE_SECONDS = 1.5
"""For one piece of work with the database, waiting for a connection included.

Every endpoint has to answer within two seconds while PostgreSQL is away. The remaining half second
is for the answers themselves, when a busy machine gives up many requests at once.
"""


class LedgerError(Exception):
    """Anything that goes wrong between us and the ledger."""


class LedgerUnavailable(LedgerError):
    """PostgreSQL is away, too slow or shutting down. Whether a write took effect is unknown."""


class AlreadyExists(LedgerError):
    """A unique constraint refused a row; `constraint` names it."""

    def __init__(self, constraint: str) -> None:
        """Keep the constraint's name."""
        super().__init__(constraint)
        self.constraint = constraint


class Database:
    """One schema, reached through its own pool and its own role (decision 5)."""

    def __init__(
        self, url: str, schema: str, *, role: str | None, pool_size: int, deadline: float
    ) -> None:
        """`role` is None where the URL's own login role is the ledger's (behind a pooler).

        A transaction pooler may run each statement on another connection, so nothing is prepared
        then: PgBouncer before 1.21 has no other way, and it costs a round trip a statement.
        """
        self.schema = schema
        self._url = url
        self._role = role
        self._pool_size = pool_size
        self.deadline_seconds = deadline
        self._pool: asyncpg.Pool | None = None

    async def open(self) -> None:
        """Make the pool, which connects at first use: a service starts without PostgreSQL."""
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=self._pool_size,
            max_inactive_connection_lifetime=300,
            timeout=self.deadline_seconds,
            # No session state is ever set, so there is none to reset: a round trip saved each time.
            reset=_nothing_to_reset,
            server_settings=self._session(),
            statement_cache_size=0 if self._role is None else 100,
        )

    @asynccontextmanager
    async def connection(self, deadline: float | None = None) -> AsyncGenerator[Connection, None]:
        """Lend a connection, under one deadline for waiting and work together."""
        try:
            async with asyncio.timeout(deadline or self.deadline_seconds):
                connection = await self.pool.acquire()
                try:
                    yield connection
                except BaseException as error:
                    if not isinstance(error, Exception) or isinstance(error, _AWAY):
                        # Cancelled or lost in mid-query: its state is unknown. Waiting for a
                        # PostgreSQL that hangs to acknowledge a cancel would outlast the deadline.
                        connection.terminate()
                    raise
                finally:
                    await self.pool.release(connection)
        except asyncpg.UniqueViolationError as error:
            # A field of the server's answer, which the driver sets and does not declare.
            constraint: str = getattr(error, "constraint_name", None) or ""
            raise AlreadyExists(constraint) from error
        except _AWAY as error:
            raise LedgerUnavailable(type(error).__name__) from error

    @asynccontextmanager
    async def transaction(self, deadline: float | None = None) -> AsyncGenerator[Connection, None]:
        """Lend a connection for one transaction: committed at the end, rolled back on an error."""
        async with self.connection(deadline) as connection, transaction_on(connection):
            if deadline is not None:
                # Longer than a session's own limit, as long as a mail server may take.
                limit = f"set local idle_in_transaction_session_timeout = '{deadline + 1:.0f}s'"
                await connection.execute(limit)
            yield connection

    @property
    def pool(self) -> asyncpg.Pool:
        """The open pool."""
        if self._pool is None:
            raise LedgerUnavailable("the database has not been opened")
        return self._pool

    async def fetch(self, sql: Sql, *args: object, deadline: float | None = None) -> list[Row]:
        """Return the rows of one statement: one round trip."""
        async with self.connection(deadline) as connection:
            return await connection.fetch(sql.on(self.schema), *args)

    async def fetchrow(self, sql: Sql, *args: object) -> Row | None:
        """Return the first row of one statement, if there is one."""
        async with self.connection() as connection:
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
    def address(self) -> tuple[str, str | None]:
        """Return URL and role, for software that makes its own connections."""
        return self._url, self._role

    @property
    def connections(self) -> tuple[int, int]:
        """Return (open, idle) connections, for the metrics."""
        if self._pool is None:
            return 0, 0
        return self._pool.get_size(), self._pool.get_idle_size()

    def _session(self) -> dict[str, str]:
        name = {"application_name": f"claim-ledger {self.schema}"}
        if self._role is None:  # PgBouncer refuses other parameters: `alter role … set` has them
            return name
        return name | {"role": self._role, "idle_in_transaction_session_timeout": "10s"}


class Reader:
    """Reads tables of one ledger, outside any transaction."""

    def __init__(self, database: Database) -> None:
        """`database` is the ledger's."""
        self._database = database


@asynccontextmanager
async def transaction_on(connection: Connection) -> AsyncGenerator[None, None]:
    """Commit at the end, roll back on an error; when cancelled, do neither.

    The driver's own context would wait for a PostgreSQL that hangs to acknowledge the cancelled
    statement before its ROLLBACK, past every deadline. The connection is discarded instead.
    """
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    except Exception:
        await transaction.rollback()
        raise
    await transaction.commit()


def is_infrastructure_error(error: Exception) -> bool:
    """Return whether no row is to blame: PostgreSQL is away, a table or a right is missing."""
    return isinstance(error, (LedgerError, asyncpg.SyntaxOrAccessError, *_AWAY))


async def _nothing_to_reset(_connection: Connection) -> None:
    pass


_AWAY = (
    OSError,  # refused, reset, no route; TimeoutError is one of them
    asyncpg.InterfaceError,  # the connection or the pool is closed
    asyncpg.InternalClientError,  # the answer to COMMIT was lost
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutting down, starting up, cancelled
    asyncpg.InsufficientResourcesError,  # disk full, too many connections, out of memory
    asyncpg.PostgresSystemError,  # an I/O error of its disk
    asyncpg.ReadOnlySQLTransactionError,  # a standby, during a failover
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
)
