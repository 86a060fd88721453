"""Reading the log for a checkpoint: leaves are recomputed from its tables and compared."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

from service.ledger.database import Database, always
from service.ledger.merkle import HASH_BYTES, CompactRange, split_hashes
from service.ledger.sql import queries

EVENTS_MAX: Final = 200_000
"""Events read at once: 6 MB of hashes, and a second or two of PostgreSQL's time."""
BYTES_MAX: Final = 256 << 20
"""Of their states, which PostgreSQL reads: a slow disk has to be done by READ_SECONDS_MAX."""
READ_SECONDS_MAX: Final = 120.0
_BREATH: Final = 5_000
"""Leaves hashed before other tasks of this process run: about 5 ms."""

_SQL = queries("service.evidence.checkpoints")


class LedgerForked(Exception):
    """The log has lost or changed events that a checkpoint covers, or contradicts itself.

    `str()` says which, for an operator. Nothing may be signed in this case. `audit verify` finds
    out more, and `audit lineage` continues after a restore or a failover.
    """


class Part(NamedTuple):
    """A part of the log up to `end`, and the log's head as of the same moment.

    `size` is the number of numbered events. `tree` is the sequencer's tree over them; None if there
    is none yet.
    """

    size: int
    tree: CompactRange | None
    end: int
    leaves: bytes

    def check_head(self, tree: CompactRange) -> None:
        """Compare the sequencer's tree with ours if they have one size; raises LedgerForked."""
        if self.size == tree.size and self.tree is not None and self.tree.root() != tree.root():
            raise LedgerForked(f"the head's tree is not that of the {self.size} events in the log")


async def read_part(database: Database, start: int, stop: int | None) -> Part:
    """Return the leaf hashes after `start`, recomputed from the events.

    They are at most EVENTS_MAX, until their states have BYTES_MAX; `stop` ends the part sooner.

    Raises LedgerForked if a leaf does not hold or is missing.
    """
    async with database.background.transaction(READ_SECONDS_MAX) as connection:
        await connection.execute(_SQL.snapshot.on(database.schema))
        head = await connection.fetchrow(_SQL.head.on(database.schema))
        if head is None:
            raise LedgerForked("the log has lost its head")
        size, joined = head["size"], head["tree"]
        try:
            tree = None if joined is None else CompactRange.from_bytes(size, joined)
        except ValueError as error:
            raise LedgerForked(f"the head's tree is none of {size} events") from error
        if size < start:
            raise LedgerForked(f"the log ends at {size}, a checkpoint has {start} events")
        end = min(size, start + EVENTS_MAX, size if stop is None else stop)
        sql = _SQL.leaves.on(database.schema)
        row = always(await connection.fetchrow(sql, start, end, BYTES_MAX))
    end = row["ended_at"] or end
    if row["altered"] is not None:
        raise LedgerForked(f"the event at position {row['altered']} is not the one that was hashed")
    if row["events"] != max(0, end - start):
        raise LedgerForked(f"positions are missing between {start + 1} and {end}")
    return Part(size, tree, end, row["leaves"])


async def extended(tree: CompactRange, leaves: bytes) -> CompactRange:
    """Return a tree grown by joined leaf hashes; other tasks run meanwhile."""
    grown = CompactRange(tree.size, tree.hashes)
    for start in range(0, len(leaves), _BREATH * HASH_BYTES):
        grown.extend(split_hashes(leaves[start : start + _BREATH * HASH_BYTES]))
        await asyncio.sleep(0)
    return grown


async def leaves_of_log(database: Database, start: int, end: int) -> AsyncGenerator[bytes]:
    """Yield the joined leaf hashes of a range, a part at a time; raises LedgerForked."""
    while start < end:
        part = await read_part(database, start, end)
        if part.end == start:
            raise LedgerForked(f"a checkpoint has {end} events, the log {start}")
        yield part.leaves
        start = part.end


async def tree_of_log(database: Database, size: int) -> CompactRange:
    """Return the tree of the first `size` events; raises LedgerForked."""
    tree = CompactRange()
    async for leaves in leaves_of_log(database, 0, size):
        tree = await extended(tree, leaves)
    return tree
