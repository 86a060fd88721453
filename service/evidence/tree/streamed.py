"""A tree over a stream of leaves: it keeps its nodes, and the tiles that are wanted."""

from collections.abc import Mapping, Sequence

from service.evidence.tree.signed_tree import SignedTree
from service.evidence.tree.tile import TILE_BYTES, WIDTH, joined_root, root_of
from service.ledger.merkle import EMPTY_ROOT, HASH_BYTES, CompactRange, split_hashes


class StreamedTree:
    """Grows by joined leaf hashes; keeps an eighth of a byte of each, and the wanted tiles."""

    def __init__(self) -> None:
        self.size = 0
        self._above = CompactRange()
        self._levels: list[bytearray] = []
        self._open = bytearray()
        self._last: dict[int, bytes] = {}
        self._kept: dict[int, bytes] = {}
        self._wanted: set[int] = set()

    def extend(self, leaves: bytes) -> None:
        """Take the next leaf hashes."""
        self._open += leaves
        self.size += len(leaves) // HASH_BYTES
        for at in range(0, len(self._open) - TILE_BYTES + 1, TILE_BYTES):
            self._close(bytes(self._open[at : at + TILE_BYTES]))
        del self._open[: len(self._open) // TILE_BYTES * TILE_BYTES]

    def want(self, index: int) -> None:
        """Keep what proves a leaf: the last one that was taken, or a later one."""
        tile = index // WIDTH
        self._wanted.add(tile)
        if tile in self._last:
            self._kept[tile] = self._last[tile]

    def root(self) -> bytes:
        """Return the root."""
        edge = CompactRange()
        edge.extend(split_hashes(bytes(self._open)))
        return joined_root([*self._above.hashes, *edge.hashes]) if self.size else EMPTY_ROOT

    async def inclusion_proofs(self, indexes: Sequence[int]) -> list[list[bytes]]:
        """Return the proofs of leaves that were wanted."""
        tree = SignedTree(self, self.size, self.root())
        return await tree.inclusion_proofs([index + 1 for index in indexes])

    async def leaves(self, tiles: Sequence[int], size: int) -> Mapping[int, bytes]:
        """Return the tiles that were wanted, and the last one."""
        assert size == self.size  # noqa: S101 - asked by its own tree alone
        last = {len(self._level(1)) // HASH_BYTES: bytes(self._open)}
        return {tile: joined for tile in tiles if (joined := (self._kept | last).get(tile))}

    async def nodes(self, level: int, tiles: Sequence[int], size: int) -> Mapping[int, bytes]:
        """Return tiles of a level's first `size` nodes."""
        below = self._level(level)[: size * HASH_BYTES]
        return {tile: bytes(below[tile * TILE_BYTES : (tile + 1) * TILE_BYTES]) for tile in tiles}

    async def stored(self) -> Mapping[int, int]:
        """Return how many nodes of each level there are."""
        return {number: len(level) // HASH_BYTES for number, level in enumerate(self._levels, 1)}

    async def forget(self) -> None:
        """Do nothing: these nodes were just made."""

    def _level(self, level: int) -> bytearray:
        return self._levels[level - 1] if level <= len(self._levels) else bytearray()

    def _close(self, tile: bytes) -> None:
        number = len(self._level(1)) // HASH_BYTES
        self._last = {number: tile}
        if number in self._wanted:
            self._kept[number] = tile
        level, node = 0, root_of(tile)
        self._above.append(node)
        while True:
            if level == len(self._levels):
                self._levels.append(bytearray())
            self._levels[level] += node
            if len(self._levels[level]) % TILE_BYTES:
                return
            node, level = root_of(bytes(self._levels[level][-TILE_BYTES:])), level + 1
