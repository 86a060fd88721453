"""A tile: up to 256 neighbouring hashes of one level (C2SP tlog-tiles), and the hashes above it.

Level 0 has the hashes of leaves; a hash of level 1 covers 256 leaves, one of level 2 65,536.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from service.ledger.merkle import HASH_BYTES, CompactRange, node_hash, split_hashes

HEIGHT: Final = 8
WIDTH: Final = 1 << HEIGHT
TILE_BYTES: Final = WIDTH * HASH_BYTES


class Tile:
    """The hashes of a tile, and of the complete subtrees above them."""

    def __init__(self, joined: bytes) -> None:
        self._rows = [split_hashes(joined)]
        while len(below := self._rows[-1]) > 1:
            self._rows.append(_above(below))
        self.above: list[bytes] | None = None
        """The proof of a full tile's root, once it has been requested."""

    @property
    def hashes(self) -> Sequence[bytes]:
        """The tile's own hashes."""
        return self._rows[0]

    @property
    def root(self) -> bytes:
        """The hash of a full tile, which is one of the level above."""
        return self._rows[HEIGHT][0]

    def hash(self, height: int, number: int) -> bytes:
        """Return the hash of a complete subtree; raises IndexError."""
        return self._rows[height][number]

    def path(self, number: int) -> list[bytes]:
        """Return the hashes that lead from one of a full tile's hashes to its root."""
        return [self._rows[height][(number >> height) ^ 1] for height in range(HEIGHT)]


class TreeNode(NamedTuple):
    """A hash of a level above the leaves, and its place there."""

    level: int
    number: int
    hash: bytes

    @property
    def positions(self) -> tuple[int, int]:
        """The first and the last event under it."""
        return (self.number << HEIGHT * self.level) + 1, self.number + 1 << HEIGHT * self.level


def completed_nodes(tree: CompactRange, leaf: bytes) -> Iterator[TreeNode]:
    """Yield the nodes that the next leaf of a tree completes, the lowest first."""
    count, level, node, end = tree.size + 1, 0, leaf, len(tree.hashes)
    while count % WIDTH == 0:
        # Of the last tile there are the subtrees of its other hashes: half of it, a quarter, … one.
        node = joined_root([*tree.hashes[end - HEIGHT : end], node])
        count, level, end = count // WIDTH, level + 1, end - HEIGHT
        yield TreeNode(level, count - 1, node)


def root_of(joined: bytes) -> bytes:
    """Return the hash of a full tile."""
    row = split_hashes(joined)
    while len(row) > 1:
        row = _above(row)
    return row[0]


def joined_root(hashes: Sequence[bytes]) -> bytes:
    """Return the hash of neighbouring subtrees, the largest first; raises IndexError for none."""
    node = hashes[-1]
    for left in reversed(hashes[:-1]):
        node = node_hash(left, node)
    return node


def _above(row: Sequence[bytes]) -> list[bytes]:
    return [sha256(b"\x01" + row[at] + row[at + 1]).digest() for at in range(0, len(row) - 1, 2)]
