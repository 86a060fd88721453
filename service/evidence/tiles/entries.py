"""The log's entries: the records of its events, whose hashes are the leaves."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from service.ledger.database import Database
from service.ledger.merkle import digested_record
from service.ledger.sql import queries

PAGE: Final = 2_000
"""Records that are made before other tasks of this process run: about 10 ms."""
BYTES_MAX: Final = 64 << 20
"""Of the states in a page, which PostgreSQL reads and hashes; no event has as much."""
READ_SECONDS_MAX: Final = 120.0
ENTRY_BYTES_MAX: Final = 2**16 - 1

_SQL = queries("service.evidence.tiles")


class EntriesUnsound(Exception):
    """The log's events are not those that were signed, or the written entries are not theirs.

    `str()` says which, for an operator.
    """


async def entries(database: Database, start: int, end: int) -> AsyncGenerator[bytes]:
    """Yield the records of the events after `start` up to `end`; raises EntriesUnsound."""
    position = start
    while position < end:
        async with database.background.transaction(READ_SECONDS_MAX) as connection:
            sql = _SQL.records.on(database.schema)
            rows = await connection.fetch(sql, position, end, PAGE, BYTES_MAX)
        if not rows:
            raise EntriesUnsound(f"the log has no event at position {position + 1}")
        for row in rows:
            position += 1
            record = digested_record(*row)
            if row["position"] != position or len(record) > ENTRY_BYTES_MAX:
                raise EntriesUnsound(f"the event at position {position} is missing, or too long")
            yield record
        await asyncio.sleep(0)


def in_bundle(record: bytes) -> bytes:
    """Return an entry as a bundle has it: its length in two bytes, and the record."""
    return len(record).to_bytes(2) + record
