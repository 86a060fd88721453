"""Transactions that leave nothing behind."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from service.ledger.database import Connection


@asynccontextmanager
async def rolled_back(
    connection: Connection,
    *,
    idle_seconds_max: float,
    isolation: Literal["read_committed", "repeatable_read"] = "read_committed",
    readonly: bool = False,
) -> AsyncGenerator[None]:
    """Open a transaction, and roll it back at the end; when cancelled, do neither.

    `idle_seconds_max` replaces the session's limit: a person may stop the terminal.
    """
    transaction = connection.transaction(isolation=isolation, readonly=readonly)
    await transaction.start()
    try:
        limit = f"set local idle_in_transaction_session_timeout = '{idle_seconds_max:.0f}s'"
        await connection.execute(limit)
        yield
    except Exception:
        await transaction.rollback()
        raise
    await transaction.rollback()
