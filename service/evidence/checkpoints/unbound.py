"""Events of the log that this service did not write: nothing that covers one is signed."""

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

_SQL = queries("service.evidence.checkpoints")


async def refuse_unbound(database: Database, binding: Binding, start: int, end: int) -> None:
    """Check the MACs of a range of the log, from where events have to have one.

    The sequencer numbers no other event; whoever writes `log` and `head` themselves could. Raises
    LedgerForked.
    """
    if not binding.boundaries:
        return
    done = max(start, binding.boundaries[0].position)
    while done < end:
        rows = await database.background.fetch(_SQL.macs, done, end, EVENTS_MAX, BYTES_MAX)
        if not rows:
            raise LedgerForked(f"positions after {done} are missing")
        for row in rows:
            _refuse(binding, row)
        done = rows[-1]["position"]
        await asyncio.sleep(0)


def _refuse(binding: Binding, row: Row) -> None:
    position, digest, mac = row
    oldest = binding.oldest_at(position)
    if digest is None or not binding.keys.is_ours(digest, mac, oldest=oldest):
        raise LedgerForked(f"the event at position {position} was not written by this service")
