"""Keeping the nodes of a log's tree up to date, in the worker, once checkpoints are made."""

import time
from collections.abc import Callable
from typing import Final

from service.evidence.tree.hashes import StoredHashes
from service.evidence.tree.nodes import TILES_MAX
from service.evidence.tree.tile import HEIGHT, TILE_BYTES, WIDTH, root_of
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

LOOK_SECONDS: Final = 10.0
"""How often to check whether the log has grown."""
SLICE_SECONDS_MAX: Final = 60.0

_SQL = queries("service.evidence.tree")


class TreeNodes:
    """Makes the nodes of a ledger, in slices. Any number of processes may."""

    def __init__(self, ledger: Ledger, monotonic: Callable[[], float] = time.monotonic) -> None:
        """`monotonic` is a clock that only this process reads."""
        self._ledger = ledger
        self._monotonic = monotonic
        self._next_at = monotonic()

    async def step(self) -> int | None:
        """Return how many nodes were made; None: none is due, and this only read a clock."""
        now = self._monotonic()
        if now < self._next_at:
            return None
        made = await self.slice()
        if not made:
            self._next_at = now + LOOK_SECONDS
        return made

    async def slice(self) -> int:
        """Make the next nodes; return how many.

        Leaves are read as the log has them. One that is altered makes a node that leads nowhere.
        """
        async with self._ledger.transaction(background=SLICE_SECONDS_MAX) as transaction:
            hashes = StoredHashes(self._ledger.database, transaction.fetch)
            if not await transaction.fetch(_SQL.hold_nodes):
                return 0
            stored = dict(await hashes.stored())
            (goal,) = await transaction.fetch(_SQL.goal)
            size, level, made = goal["size"] or 0, 1, 0
            start = stored.get(level, 0)
            end = min(size >> HEIGHT, start + TILES_MAX)
            found = await hashes.leaves(range(start, end), size) if start < end else {}
            while found:
                rising = [found.get(tile, b"") for tile in range(start, start + len(found))]
                if any(len(joined) != TILE_BYTES for joined in rising):
                    break  # the log has a gap: `audit verify` says so
                await transaction.fetch(_SQL.keep_nodes, level, start, list(map(root_of, rising)))
                made += len(rising)
                below, level = start + len(rising), level + 1
                start = stored.get(level, 0)
                tiles = range(start, below // WIDTH)
                found = await hashes.nodes(level - 1, tiles, below) if tiles else {}
        return made
