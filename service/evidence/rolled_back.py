"""Transactions that leave nothing behind."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from service.ledger.database import Connection, Database
from service.ledger.limits import local_limits


@asynccontextmanager
async def rolled_back(
    connection: Connection,
    *,
    seconds_max: float,
    isolation: Literal["read_committed", "repeatable_read"] = "read_committed",
    readonly: bool = False,
    snapshot: str | None = None,
) -> AsyncGenerator[None]:
    """Open a transaction, and roll it back at the end; when cancelled, do neither.

    `snapshot` is one that another transaction exported: what it sees, this one does, too.
    `seconds_max` replaces the session's limits for a statement, and for the time between two: a
    person may stop the terminal.
    """
    transaction = connection.transaction(isolation=isolation, readonly=readonly)
    await transaction.start()
    try:
        if snapshot is not None:  # before any other statement
            await connection.execute(f"set transaction snapshot {_quoted(snapshot)}")
        await connection.execute(local_limits(seconds_max))
        yield
    except Exception:  # raised again, once all is undone
        await transaction.rollback()
        raise
    await transaction.rollback()


@asynccontextmanager
async def snapshot_of(
    database: Database, seconds_max: float, deadline: float | None = None
) -> AsyncGenerator[Connection]:
    """Yield a connection for which the database stays as it is now, and which cannot write.

    `seconds_max` limits each statement. `deadline`, the same unless it is given, limits the whole.
    """
    async with (
        database.background.connection(deadline or seconds_max) as connection,
        rolled_back(
            connection, seconds_max=seconds_max, isolation="repeatable_read", readonly=True
        ),
    ):
        yield connection


def _quoted(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))
