"""The log page by page: the next page is read while one is processed."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple

from service.ledger.database import Connection, Database, Row
from service.ledger.decoding import PAGE_BYTES_MAX, is_full
from service.ledger.sql import queries

BATCH: Final = 5000
"""Positions of a page at most; fewer where events are large (PAGE_BYTES_MAX)."""
SECONDS_MAX: Final = 6 * 3600.0
"""For the whole log."""

_SQL = queries("service.evidence.replay")


class ReplayPage(NamedTuple):
    """The rows of the log after a position, up to `end`, in order: an event's columns, its hash.

    Among them is its MAC, where `pages` was asked for it. If an event is missing, its columns are
    None.
    """

    rows: Sequence[Row]
    start: int
    end: int


async def pages(
    database: Database, last: int, macs_after: int | None = None
) -> AsyncGenerator[ReplayPage]:
    """Yield the log from its beginning up to a position, with the MACs of those after another.

    Each page is a statement with a snapshot of its own: one over the whole log would keep
    `pending` from being cleaned.
    """
    if last < 1:
        return
    after = last if macs_after is None else macs_after
    async with database.reads.transaction(SECONDS_MAX) as connection:
        await connection.fetchrow(_SQL.plan.on(database.schema))
        ahead = _begun(connection, database.schema, 0, min(BATCH, last), after)
        try:
            while True:
                page = await ahead
                if page.end == last:
                    yield page
                    return
                end = min(page.end + _positions(page), last)
                ahead = _begun(connection, database.schema, page.end, end, after)
                await asyncio.sleep(0)  # PostgreSQL is asked before anything else is done
                yield page
        finally:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)  # it holds the connection


def _begun(
    connection: Connection, schema: str, start: int, end: int, macs_after: int
) -> "asyncio.Task[ReplayPage]":
    async def page() -> ReplayPage:
        limits = (start, end, PAGE_BYTES_MAX, macs_after)
        rows = await connection.fetch(_SQL.page.on(schema), *limits)
        return ReplayPage(rows, start, rows[-1]["position"] if is_full(rows) else end)

    return asyncio.create_task(page())


def _positions(page: ReplayPage) -> int:
    """Return how many positions to read next: those that have about PAGE_BYTES_MAX."""
    size = sum(len(row["state"] or b"") for row in page.rows)
    return max(1, min(BATCH, len(page.rows) * PAGE_BYTES_MAX // max(1, size)))
