"""Calls that could not be written: they are kept in order, bounded, or counted as dropped."""

import asyncio
from datetime import UTC, datetime

import pytest

from service.ledger.database import LedgerUnavailable
from service.request_log import log as request_log
from service.request_log.log import RequestLog, RequestLogEntry

AT = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)


class Interrupted(RequestLog):
    """A log in memory, the first batch of which is interrupted."""

    def __init__(self, interrupt):
        self.written, self.dropped = [], []
        super().__init__(None, {"live": None}, self.dropped.append)
        self.interrupt = interrupt

    def call(self, *numbers):
        """Add calls."""
        for number in numbers:
            one = RequestLogEntry(str(number), "ptn_1", "key_1", AT, "GET", "/", 200, "", 1.0)
            self.add("live", one)

    async def _write(self, _database, batch):
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            await interrupt(self)
        self.written += [int(one.request_id) for one in batch]


async def test_a_stop_while_calls_are_written_loses_none(monkeypatch):
    """They are written before it ends."""
    monkeypatch.setattr(request_log, "FLUSH_SECONDS", 0)
    writes = asyncio.Event()

    async def hang(_log):
        writes.set()
        await asyncio.Event().wait()

    log = Interrupted(hang)
    log.call(1, 2)
    log.start()
    await writes.wait()
    await log.stop()
    assert (log.written, log.dropped) == ([1, 2], [])


async def test_what_comes_in_while_nothing_can_be_written_takes_the_place_of_the_oldest(
    monkeypatch,
):
    """The calls that wait are never more than the limit, and stay in their order."""
    monkeypatch.setattr(request_log, "WAITING_MAX", 3)

    async def fail(log):
        log.call(4, 5)
        raise LedgerUnavailable

    log = Interrupted(fail)
    log.call(1, 2, 3)
    with pytest.raises(LedgerUnavailable):
        await log.flush()
    assert sum(log.dropped) == 2
    await log.flush()
    assert log.written == [3, 4, 5]
