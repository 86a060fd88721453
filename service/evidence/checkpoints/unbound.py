"""Events that this service did not write, or that are out of order, which are never signed."""

import asyncio
from typing import Final

from service.evidence.checkpoints.log_tree import LedgerForked
from service.ledger.binding import Binding
from service.ledger.database import Database, Row
from service.ledger.sql import queries

EVENTS_MAX: Final = 5_000
"""Checked before other tasks of this process run: about 10 ms."""
BYTES_MAX: Final = 64 << 20
"""Of their states, which PostgreSQL hashes."""

OUT_OF_ORDER: Final = "is not behind the one before it in its stream, or not alone"

_SQL = queries("service.evidence.checkpoints")


async def refuse_unbound(database: Database, binding: Binding, start: int, end: int) -> None:
    """Check the MACs of a range of the log, from where events need one, and the order.

    The sequencer numbers only events with a MAC, each after the one before it in its stream.
    Whoever writes to `log` and `head` directly could number others. Raises LedgerForked.
    """
    while start < end:
        rows = await database.background.fetch(_SQL.macs, start, end, EVENTS_MAX, BYTES_MAX)
        if not rows:
            raise LedgerForked(f"positions after {start} are missing")
        for row in rows:
            _refuse(binding, row)
        start = rows[-1]["position"]
        await asyncio.sleep(0)


def _refuse(binding: Binding, row: Row) -> None:
    position, digest, mac, in_order = row
    is_bound = binding.boundaries and position > binding.boundaries[0].position
    oldest = binding.oldest_at(position)
    if is_bound and (digest is None or not binding.keys.is_ours(digest, mac, oldest=oldest)):
        raise LedgerForked(f"the event at position {position} was not written by this service")
    if not in_order:
        raise LedgerForked(f"the event at position {position} {OUT_OF_ORDER}")
