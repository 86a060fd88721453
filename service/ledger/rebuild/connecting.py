"""A rebuild's connections to PostgreSQL, and the lock that keeps two rebuilds of a ledger apart."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from service.ledger.connection import ReachableConnection
from service.ledger.database import Connection, LedgerUnavailable
from service.ledger.dates import read_every_date
from service.ledger.limits import BACKGROUND_SECONDS, Limits
from service.ledger.session import SESSION
from service.ledger.sql import queries

CONNECT_SECONDS_MAX: Final = 10
CLOSED: Final = (asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What the driver raises on a connection that has been lost before."""

# Pages of the log are joined by index, however large the planner believes them to be: its guess for
# a range of parameters is a fixed share of the table. No parallel workers: the number of processes
# determines how many processors a rebuild uses. Commits are not waited for, except the swap's,
# because a lost rebuild can be repeated. A rebuild that was killed, or hangs, releases its locks,
# and never waits long for one. Statements have no time limit, whatever the login's own is, because
# an index may take hours.
OF_REBUILD: Final = {
    **SESSION,
    **Limits.of_background(BACKGROUND_SECONDS).settings,
    "application_name": "claim-ledger rebuild",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "60s",  # a page is decoded, on a machine that is busy
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "max_parallel_maintenance_workers": "0",
    "max_parallel_workers_per_gather": "0",
    "synchronous_commit": "off",
    "timezone": "UTC",
}
_SQL = queries("service.ledger.rebuild")


@asynccontextmanager
async def connected(
    database_url: str, *, pooled: bool = False
) -> AsyncGenerator[ReachableConnection, None]:
    """Lend a connection of its own; `pooled`: perhaps over a transaction pooler."""
    try:
        connection = await asyncpg.connect(
            database_url,
            connection_class=ReachableConnection,
            timeout=CONNECT_SECONDS_MAX,
            server_settings={} if pooled else OF_REBUILD,
            statement_cache_size=0 if pooled else 100,
        )
    except OSError as error:
        raise LedgerUnavailable(type(error).__name__) from error
    connection.keep_alive()
    try:
        await read_every_date(connection)
        yield connection
    finally:
        connection.terminate()


@asynccontextmanager
async def shared_lock(connection: Connection, ledger: str) -> AsyncGenerator[None, None]:
    """Share the lock of a rebuild, held alone by this connection, with the processes of its parts.

    What they hold keeps other rebuilds out if this one is killed, until they have ended, too. It
    ends when it is held alone again: then no part is left. Raises LockNotAvailableError if one is.
    """
    await connection.execute(_SQL.lock_shared.on(ledger), ledger)
    await connection.execute(_SQL.unlock.on(ledger), ledger)
    try:
        yield
    finally:
        await connection.execute(_SQL.lock.on(ledger), ledger)
        await connection.execute(_SQL.unlock_shared.on(ledger), ledger)
