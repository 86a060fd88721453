"""Forgetting calls after thirty days, beside the noting of new ones."""

import asyncio
from collections.abc import Iterable
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
"""Rows forgotten in one statement, so that none takes long."""
BREATH_SECONDS: Final = 0.05
"""Between two statements, so that a backlog leaves the database to others."""

_SQL = queries("service.request_log")
_STATEMENTS: Final = (_SQL.forget_requests, _SQL.forget_minutes)

log = structlog.get_logger()


class Retention:
    """Removes what is older than KEPT, by the clock that it was noted by."""

    def __init__(self, databases: Iterable[Database], clock: Clock) -> None:
        """`databases` are those of the ledgers live and test."""
        self._databases = list(databases)
        self._clock = clock
        self.loop: Final = Loop("forgetting of requests", self._run)

    async def forget(self) -> int:
        """Forget all that is due; answer how many rows. Raises LedgerError."""
        before = self._clock() - KEPT
        forgotten = 0
        for database in self._databases:
            for statement in _STATEMENTS:
                while rows := await _count(database, statement, before, ROWS_MAX):
                    forgotten += rows
                    if rows < ROWS_MAX:
                        break
                    await asyncio.sleep(BREATH_SECONDS)
            forgotten += await _count(database, _SQL.forget_days, before)
        return forgotten

    async def _run(self) -> None:
        while True:
            try:
                await self.forget()
            except LedgerError as error:
                log.warning("requests not forgotten", error_type=type(error).__name__)
            except Exception:
                log.exception("forgetting of requests failed")
            await asyncio.sleep(EVERY_SECONDS)


async def _count(database: Database, statement: Sql, *arguments: object) -> int:
    row = await database.fetchrow(statement, *arguments)
    return 0 if row is None else row["forgotten"]
