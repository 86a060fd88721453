"""Proofs of a log under a signed root, from the tiles that they need.

Nothing that is read is trusted: every tile is compared with the level above it, and the topmost
ones with the root. If a stored node is wrong, all nodes are recomputed from the leaves.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Self, TypeVar

from service.evidence.checkpoint import Checkpoint
from service.evidence.tree.hashes import Hashes, StoredHashes
from service.evidence.tree.nodes import TILES_MAX, Nodes, NodesAltered, NodesBehind, TreeAltered
from service.evidence.tree.ranges import Range, complete, consistency_ranges, path_ranges
from service.evidence.tree.tile import HEIGHT, WIDTH, Tile, joined_root
from service.ledger.database import Database
from service.ledger.merkle import EMPTY_ROOT, HASH_BYTES

KEPT_MAX: Final = 256
"""Tiles kept in memory: some ten megabytes."""

T = TypeVar("T")


class SignedTree:
    """The tree of a log's first `size` events, whose root was signed."""

    def __init__(self, hashes: Hashes, size: int, root: bytes, made_max: int | None = None) -> None:
        """`root` is trusted: the caller has verified its signature, or signs it.

        `made_max` limits the number of tiles of leaves from which nodes are computed, which
        requires reading all of these leaves. Beyond it, every method raises NodesBehind.
        """
        self.size = size
        self._hashes = hashes
        self._root = root
        self._made_max = made_max
        self._nodes: Nodes | None = None
        self._edge: dict[int, Tile] = {}
        self._kept: dict[tuple[int, int], Tile] = {}

    @classmethod
    def of(cls, database: Database, checkpoint: Checkpoint, made_max: int | None = None) -> Self:
        """Return the tree of a ledger under a checkpoint."""
        return cls(StoredHashes(database), checkpoint.size, checkpoint.root, made_max)

    async def inclusion_proofs(self, positions: Sequence[int]) -> list[list[bytes]]:
        """Return the proof of each position, from 1 on; raises TreeAltered.

        Proofs of neighbouring positions share most of their cost. A proof is of the leaf that the
        log has there: the caller compares it with the event.
        """
        return await self._authentic(lambda: self._proofs(positions))

    async def consistency_proof(self, old_size: int) -> list[bytes]:
        """Return the proof that the log began with the tree of `old_size`; raises TreeAltered."""
        ranges = consistency_ranges(old_size, self.size)
        return await self._authentic(lambda: self._hashes_of(ranges))

    async def edge_at(self, old_size: int) -> list[bytes]:
        """Return the right edge of the tree at a size up to its own, largest subtree first.

        Raises TreeAltered.
        """
        return await self._authentic(lambda: self._hashes_of(list(complete(0, old_size))))

    async def _authentic(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what reads tiles; where stored nodes are altered, again without them."""
        try:
            if self._nodes is None:
                await self._open(await self._hashes.stored())
            return await work()
        except NodesAltered:
            try:
                await self._open({})
            except NodesAltered:
                raise _no_root() from None
            except NodesBehind:  # not made here: the worker makes all of them anew
                await self._hashes.forget()
                raise
        await self._hashes.forget()
        return await work()

    async def _open(self, stored: Mapping[int, int]) -> None:
        """Read the right edge of the tree: the last tile of each level, where it is not full."""
        self._kept, self._edge, self._nodes = {}, {}, None
        nodes = Nodes(self._hashes, self.size, self._made_max)
        await nodes.open(stored)
        level = 0
        while count := nodes.count(level):
            if width := count % WIDTH:
                last = count // WIDTH
                self._edge[level] = Tile((await self._read(nodes, level, [last], width))[0])
            level += 1
        found = self._at_edge(0, self.size) if self.size else EMPTY_ROOT
        if found != self._root:
            raise NodesAltered
        self._nodes = nodes

    async def _read(
        self, nodes: Nodes, level: int, tiles: Sequence[int], width: int
    ) -> list[bytes]:
        if level:
            found = await nodes.tiles(level, tiles)
        else:
            found = await self._hashes.leaves(tiles, self.size)
        for tile in tiles:
            if len(found.get(tile, b"")) != width * HASH_BYTES:
                raise _leaves_missing(tile, width) if not level else NodesAltered
        return [found[tile] for tile in tiles]

    async def _tiles(self, level: int, tiles: Iterable[int]) -> list[Tile]:
        """Return tiles that lead to the root; full ones are compared with the level above."""
        assert self._nodes is not None  # noqa: S101 - opened by `_authentic`
        asked, last = list(tiles), self.size >> HEIGHT * (level + 1)
        missing = [one for one in asked if one < last and (level, one) not in self._kept]
        if missing:
            parents = dict.fromkeys(tile // WIDTH for tile in missing)
            above = dict(zip(parents, await self._tiles(level + 1, parents), strict=True))
            for start in range(0, len(missing), TILES_MAX):
                part = missing[start : start + TILES_MAX]
                raw = await self._read(self._nodes, level, part, WIDTH)
                for tile, joined in zip(part, raw, strict=True):
                    found = Tile(joined)
                    if found.root != above[tile // WIDTH].hashes[tile % WIDTH]:
                        raise _leaf_altered(tile) if not level else NodesAltered
                    self._kept[level, tile] = found
        return [self._edge[level] if one == last else self._kept[level, one] for one in asked]

    async def _proofs(self, positions: Sequence[int]) -> list[list[bytes]]:
        proofs: list[list[bytes]] = []
        for start in range(0, len(positions), TILES_MAX):
            part = positions[start : start + TILES_MAX]
            self._make_room()
            tiles = dict.fromkeys((position - 1) // WIDTH for position in part)
            await self._tiles(0, tiles)
            proofs += [self._proof(0, position - 1) for position in part]
        return proofs

    def _proof(self, level: int, index: int) -> list[bytes]:
        """Return what leads from a node to the root; the tiles above it are there."""
        tile, number = divmod(index, WIDTH)
        kept = self._kept.get((level, tile))
        if kept is None:  # at the right edge
            start, end = index << HEIGHT * level, (index + 1) << HEIGHT * level
            ranges = path_ranges((start, end), self.size)
            return [self._at_edge(*one) for one in ranges]
        if kept.above is None:
            kept.above = self._proof(level + 1, tile)
        return kept.path(number) + kept.above

    async def _hashes_of(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the hashes of subtrees that begin where complete ones can."""
        self._make_room()
        for start, end in ranges:
            for at, to in complete(start, end):
                level, _, tile, _ = _place(at, to)
                await self._tiles(level, [tile])
        return [self._at_edge(*one) for one in ranges]

    def _at_edge(self, start: int, end: int) -> bytes:
        return joined_root([self._at(*one) for one in complete(start, end)])

    def _at(self, start: int, end: int) -> bytes:
        """Return the hash of a complete subtree, whose tile is there."""
        level, height, tile, number = _place(start, end)
        found = self._kept.get((level, tile)) or self._edge[level]
        return found.hash(height, number)

    def _make_room(self) -> None:
        if len(self._kept) > KEPT_MAX:
            self._kept.clear()


def _place(start: int, end: int) -> tuple[int, int, int, int]:
    """Return the level, height, tile and number within it of a complete subtree."""
    level, height = divmod((end - start).bit_length() - 1, HEIGHT)
    tile, number = divmod(start >> HEIGHT * level, WIDTH)
    return level, height, tile, number >> height


def _no_root() -> TreeAltered:
    return TreeAltered(1, "the log does not make the checkpoint's root; run `audit verify`")


def _leaf_altered(tile: int) -> TreeAltered:
    first, last = tile * WIDTH + 1, (tile + 1) * WIDTH
    said = f"the events at positions {first} to {last} do not lead to the checkpoint's root"
    return TreeAltered(first, f"{said}; run `audit verify`")


def _leaves_missing(tile: int, width: int) -> TreeAltered:
    first = tile * WIDTH + 1
    return TreeAltered(first, f"positions are missing among {first} to {first + width - 1}")
