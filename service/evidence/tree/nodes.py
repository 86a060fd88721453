"""The nodes above the leaves: stored ones, and the rest, computed from the leaves."""

from collections.abc import Mapping, Sequence
from typing import Final

from service.evidence.tree.hashes import Hashes
from service.evidence.tree.tile import HEIGHT, TILE_BYTES, WIDTH, root_of
from service.evidence.verdict import EvidenceFault
from service.ledger.merkle import HASH_BYTES

TILES_MAX: Final = 64
"""Read at once: half a megabyte of hashes."""


class TreeAltered(EvidenceFault):
    """The log's hashes do not lead to a signed root; `position` is the first one in doubt."""


class NodesAltered(Exception):
    """A stored node does not follow from the leaves, or the leaves are not what was signed."""


class NodesBehind(Exception):
    """More nodes would have to be computed from the leaves than the caller allows."""


class Nodes:
    """The nodes of every level above the leaves of a tree. Reads stored ones, computes the rest."""

    def __init__(self, hashes: Hashes, size: int, made_max: int | None = None) -> None:
        """`size` counts the leaves. `made_max`: of so many tiles of leaves nodes are made here."""
        self._hashes = hashes
        self._size = size
        self._made_max = made_max
        self._first: dict[int, int] = {}
        """How many nodes of a level are read from where they are stored; the others are made."""
        self._made: dict[int, bytearray] = {}

    async def open(self, stored: Mapping[int, int]) -> None:
        """Compute the nodes that are not `stored`, which gives the number of stored ones by level.

        Raises TreeAltered for a gap in the log, NodesAltered for one among the stored nodes, and
        NodesBehind.
        """
        first, level = min(stored.get(1, 0), self.count(1)), 1
        self._first[1], self._made[1] = first, bytearray()
        if self._made_max is not None and self.count(1) - first > self._made_max:
            raise NodesBehind
        for start in range(first, self.count(1), TILES_MAX):
            for joined in await self._leaf_tiles(start, min(start + TILES_MAX, self.count(1))):
                self._made[1] += root_of(joined)
        while (count := self.count(level + 1)) > 0:
            first = min(stored.get(level + 1, 0), first // WIDTH, count)
            made = bytearray()
            for tile in range(first, count):
                joined = (await self.tiles(level, [tile]))[tile]
                if len(joined) != TILE_BYTES:
                    raise NodesAltered
                made += root_of(joined)
            level += 1
            self._first[level], self._made[level] = first, made

    def count(self, level: int) -> int:
        """Return how many nodes a level has."""
        return self._size >> HEIGHT * level

    async def tiles(self, level: int, tiles: Sequence[int]) -> Mapping[int, bytes]:
        """Return tiles of a level; a stored node that is missing makes its tile too short."""
        first, made = self._first[level], self._made[level]
        asked = [tile for tile in tiles if tile * WIDTH < first]
        stored = await self._hashes.nodes(level, asked, first) if asked else {}
        found: dict[int, bytes] = {}
        for tile in tiles:
            start = max(tile * WIDTH - first, 0)
            end = max((tile + 1) * WIDTH - first, 0)
            found[tile] = stored.get(tile, b"") + made[start * HASH_BYTES : end * HASH_BYTES]
        return found

    async def _leaf_tiles(self, start: int, end: int) -> list[bytes]:
        found = await self._hashes.leaves(range(start, end), self._size)
        for tile in range(start, end):
            if len(found.get(tile, b"")) != TILE_BYTES:
                first, last = tile * WIDTH + 1, (tile + 1) * WIDTH
                raise TreeAltered(first, f"positions are missing among {first} to {last}")
        return [found[tile] for tile in range(start, end)]
