"""Record every authenticated call, without making it wait.

A request puts its entry into memory; a loop writes each second's entries in one batch. While
PostgreSQL is away for long, or calls come faster than they can be written, the oldest entries are
dropped and counted: the console's list is a convenience, the ledger is the record.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from service.core.loops import Loop
from service.core.outages import Outages
from service.facts.caller import Mode
from service.ledger.database import Database, LedgerError
from service.ledger.sql import queries

WAITING_MAX: Final = 20_000
"""Entries of one mode that wait to be written; some 10 MB, and 30 if all have faults."""
BATCH_MAX: Final = 2_000
FLUSH_SECONDS: Final = 1.0

_SQL = queries("service.request_log")

log = structlog.get_logger()


class RequestLogEntry(NamedTuple):
    """One call. `route` is the path's template, `outcome` what `outcome.py` makes of it."""

    request_id: str
    partner_id: str
    key_id: str
    at: datetime
    method: str
    route: str
    status: int
    code: str
    duration_ms: float
    outcome: str | None = None


@dataclass(eq=False)
class RequestLog:
    """Collects entries and writes them to the schema of their mode.

    `on_dropped` is called with the number of entries lost.
    """

    accounts: Database
    modes: Mapping[Mode, Database]
    on_dropped: Callable[[int], None]

    def __post_init__(self) -> None:
        """Begin with nothing that waits."""
        self._waiting: dict[Mode, deque[RequestLogEntry]] = {mode: deque() for mode in self.modes}
        self._loop = Loop("request log", self._run)
        self._outages = Outages()

    def add(self, mode: Mode, entry: RequestLogEntry) -> None:
        """Take an entry to be written soon."""
        self._waiting[mode].append(entry)
        self._bound(self._waiting[mode])

    def start(self) -> None:
        """Begin to write in the background."""
        self._loop.start()

    async def stop(self) -> None:
        """Stop the loop and write what waits, if it can be written."""
        await self._loop.stop()
        try:
            await self.flush()
        except LedgerError:
            self.on_dropped(sum(len(waiting) for waiting in self._waiting.values()))

    async def flush(self) -> None:
        """Write what waits, oldest first. Raises LedgerError and keeps what was not written."""
        for mode, waiting in self._waiting.items():
            while waiting:
                await self._flush_some(self.modes[mode], waiting)

    async def _flush_some(self, database: Database, waiting: deque[RequestLogEntry]) -> None:
        # Taken out first: what comes in meanwhile may push old entries out of the queue.
        batch = [waiting.popleft() for _ in range(min(len(waiting), BATCH_MAX))]
        try:
            await self._write(database, batch)
        except (LedgerError, asyncio.CancelledError):
            # Even if it was written: a second write counts nothing twice.
            waiting.extendleft(reversed(batch))
            self._bound(waiting)
            raise
        except Exception:
            # An entry that PostgreSQL will never accept must not hold up all that follow.
            self.on_dropped(len(batch))
            log.exception("request log entries refused")

    def _bound(self, waiting: deque[RequestLogEntry]) -> None:
        while len(waiting) > WAITING_MAX:
            waiting.popleft()
            self.on_dropped(1)

    async def _write(self, database: Database, batch: Sequence[RequestLogEntry]) -> None:
        await database.background.fetch(_SQL.add_entries, *map(list, zip(*batch, strict=True)))
        used: dict[str, datetime] = {}
        for entry in batch:
            used[entry.key_id] = max(entry.at, used.get(entry.key_id, entry.at))
        await self.accounts.background.fetch(_SQL.set_key_uses, list(used), list(used.values()))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except LedgerError as error:
                why = type(error.__cause__ or error).__name__
                if self._outages.is_due(why):
                    log.warning("request log waits", error_type=why)
            else:
                if self._outages.end():
                    log.info("request log goes on")
