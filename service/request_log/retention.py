"""Delete what is kept for a while, in the background: calls after thirty days."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Final

import structlog

from service.core.clock import Clock
from service.core.loops import Loop
from service.ledger.database import Database, LedgerError
from service.ledger.sql import Sql, queries

KEPT: Final = timedelta(days=30)
EVERY_SECONDS: Final = 600.0
ROWS_MAX: Final = 5_000
"""Rows deleted by one statement, so that none takes long."""
PAUSE_SECONDS: Final = 0.05
"""Between two statements, so that a backlog leaves the database to others."""

_SQL = queries("service.request_log")

log = structlog.get_logger()


class Retention:
    """Deletes calls that are older than KEPT, and what others keep for a while."""

    def __init__(
        self, databases: Iterable[Database], clock: Clock, *others: Callable[[], Awaitable[int]]
    ) -> None:
        """`databases` are those of the ledgers live and test; `clock` is the request log's.

        `others` are called as often; they delete what is due, and may raise LedgerError.
        """
        self._databases = list(databases)
        self._clock = clock
        self._all = (self.delete_expired, *others)
        self.loop: Final = Loop("retention", self._run)

    async def delete_expired(self) -> int:
        """Delete all that is due; return how many rows. Raises LedgerError."""
        total = 0
        for database in self._databases:
            before = await database.not_ahead(self._clock()) - KEPT
            for statement in (_SQL.delete_requests, _SQL.delete_minutes):
                while rows := await _delete(database, statement, before, ROWS_MAX):
                    total += rows
                    if rows < ROWS_MAX:
                        break
                    await asyncio.sleep(PAUSE_SECONDS)
            for statement in (_SQL.delete_hours, _SQL.delete_days):
                total += await _delete(database, statement, before)
        return total

    async def run_once(self) -> None:
        """Delete all that is due; a failure is logged, and stops no other."""
        for delete in self._all:
            try:
                await delete()
            except LedgerError as error:
                log.warning(
                    "expired rows not deleted", error_type=type(error.__cause__ or error).__name__
                )
            except Exception:  # tried again in time: nothing waits for it
                log.exception("deleting expired rows failed")

    async def _run(self) -> None:
        while True:
            await self.run_once()
            await asyncio.sleep(EVERY_SECONDS)


async def _delete(database: Database, statement: Sql, *arguments: object) -> int:
    row = await database.background.fetchrow(statement, *arguments)
    return 0 if row is None else row["deleted"]
