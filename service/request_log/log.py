"""Noting each authenticated call, without its waiting for that.

A request puts a note into memory; a loop writes the notes of a second at once. Where PostgreSQL is
away for long, or calls come faster than they can be written, the oldest notes are dropped and
counted: the console's list is a convenience, the ledger is the record.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from service.core.loops import Loop
from service.facts.caller import Mode
from service.ledger.database import Database, LedgerError
from service.ledger.sql import queries

WAITING_MAX: Final = 20_000
"""Notes of one mode that wait; some 10 MB."""
BATCH_MAX: Final = 2_000
FLUSH_SECONDS: Final = 1.0

_SQL = queries("service.request_log")

log = structlog.get_logger()


class RequestLogEntry(NamedTuple):
    """One call. `route` is the path's template, `duration_ms` milliseconds."""

    request_id: str
    partner_id: str
    key_id: str
    at: datetime
    method: str
    route: str
    status: int
    code: str
    duration_ms: float


class RequestLog:
    """Collects notes, and writes them to the schema of their mode."""

    def __init__(
        self,
        accounts: Database,
        modes: Mapping[Mode, Database],
        on_dropped: Callable[[int], None],
    ) -> None:
        """`on_dropped` hears how many notes were lost."""
        self._accounts = accounts
        self._modes = modes
        self._on_dropped = on_dropped
        self._waiting: dict[Mode, deque[RequestLogEntry]] = {mode: deque() for mode in modes}
        self._loop = Loop("request notes", self._run)

    def note(self, mode: Mode, note: RequestLogEntry) -> None:
        """Take a note; never waits."""
        self._waiting[mode].append(note)
        self._bound(self._waiting[mode])

    def start(self) -> None:
        """Begin to write."""
        self._loop.start()

    async def stop(self) -> None:
        """Write what waits, if it can be written, and end."""
        await self._loop.stop()
        try:
            await self.flush()
        except LedgerError:
            self._on_dropped(sum(len(waiting) for waiting in self._waiting.values()))

    async def flush(self) -> None:
        """Write what waits, oldest first; raises LedgerError, and keeps what was not written."""
        for mode, waiting in self._waiting.items():
            while waiting:
                await self._flush_some(self._modes[mode], waiting)

    async def _flush_some(self, database: Database, waiting: deque[RequestLogEntry]) -> None:
        # Out of the queue while it is written: what comes in meanwhile may push old notes out.
        batch = [waiting.popleft() for _ in range(min(len(waiting), BATCH_MAX))]
        try:
            await self._write(database, batch)
        except (LedgerError, asyncio.CancelledError):
            waiting.extendleft(reversed(batch))  # written or not: twice counts once
            self._bound(waiting)
            raise
        except Exception:
            # A note that PostgreSQL will never take must not hold up all that follow.
            self._on_dropped(len(batch))
            log.exception("request notes refused")

    def _bound(self, waiting: deque[RequestLogEntry]) -> None:
        while len(waiting) > WAITING_MAX:
            waiting.popleft()
            self._on_dropped(1)

    async def _write(self, database: Database, batch: Sequence[RequestLogEntry]) -> None:
        await database.fetch(_SQL.note, *map(list, zip(*batch, strict=True)))
        used: dict[str, datetime] = {}
        for note in batch:
            used[note.key_id] = max(note.at, used.get(note.key_id, note.at))
        await self._accounts.fetch(_SQL.used, list(used), list(used.values()))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except LedgerError as error:
                log.warning("request notes wait", error_type=type(error).__name__)
