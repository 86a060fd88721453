"""A tree's right edge as tiles: what is needed to make all later tiles."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from service.evidence.tiles.names import TilePlace, partial_places
from service.evidence.tree.tile import WIDTH, root_of
from service.ledger.merkle import EMPTY_ROOT, HASH_BYTES, CompactRange, split_hashes


class MadeTile(NamedTuple):
    """Consecutive hashes of a level of the tree, joined."""

    place: TilePlace
    hashes: bytes


class TileEdge:
    """The unfinished tile of each level. The root follows from them, so they can be verified."""

    def __init__(self, size: int = 0, tiles: Mapping[TilePlace, bytes] | None = None) -> None:
        """Continue a tree of a size, of whose unfinished `tiles` none may be missing.

        Raises ValueError for tiles that are none of such a tree.
        """
        self.size = size
        self._levels: list[list[bytes]] = []
        for place in partial_places(size):
            joined = (tiles or {}).get(place, b"")
            if len(joined) != place.width * HASH_BYTES:
                raise ValueError(
                    f"a tile of level {place.level} does not have {place.width} hashes"
                )
            self._levels += [[] for _ in range(place.level - len(self._levels))]
            self._levels.append(split_hashes(joined))

    def append(self, leaf: bytes) -> Iterator[MadeTile]:
        """Append the hash of a leaf; yield the tiles that this completes."""
        node = leaf
        self.size += 1
        size = self.size
        for level in range(64):
            if level == len(self._levels):
                self._levels.append([])
            hashes = self._levels[level]
            hashes.append(node)
            if len(hashes) < WIDTH:
                return
            size //= WIDTH
            joined = b"".join(hashes)
            yield MadeTile(TilePlace(level, size - 1, WIDTH), joined)
            node = root_of(joined)
            hashes.clear()

    def unfinished(self) -> list[MadeTile]:
        """Return the tiles that are neither empty nor full."""
        return [
            MadeTile(place, b"".join(self._levels[place.level]))
            for place in partial_places(self.size)
        ]

    def root(self) -> bytes:
        """Return the root hash of the tree."""
        node: bytes | None = None
        for hashes in self._levels:
            # What is right of a level's hashes is smaller than each of them is.
            below = [] if node is None else [node]
            node = _root([*hashes, *below]) if hashes or below else None
        return EMPTY_ROOT if node is None else node


def _root(hashes: list[bytes]) -> bytes:
    tree = CompactRange()
    tree.extend(hashes)
    return tree.root()
