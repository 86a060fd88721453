"""Proofs read from tiles: they are those of the whole tree, and nothing that is read is trusted."""

import asyncio
from collections.abc import Iterator
from hashlib import sha256

import pytest

from service.evidence.tree.nodes import NodesBehind, TreeAltered
from service.evidence.tree.signed_tree import SignedTree
from service.evidence.tree.tile import root_of
from service.ledger.merkle import CompactRange, is_consistent, root_by_inclusion
from tests.ledger.merkle_tree import MerkleTree
from tests.tables import every_row

SIZE = 66_321
"""259 full tiles and a part; two nodes of level 1 are behind the only one of level 2."""


class MemoryHashes:
    """Hashes in memory, as a ledger's database has them; counts what is asked of it."""

    def __init__(self, leaves, stored):
        self.leaf_hashes = list(leaves)
        below, self.levels = leaves, []
        for count in stored:
            tiles = [b"".join(below[at * 256 : at * 256 + 256]) for at in range(count)]
            below = [root_of(tile) for tile in tiles]
            self.levels.append(below)
        self.is_forgotten = False
        self.asked = 0

    async def leaves(self, tiles, size):
        """Return tiles of leaves."""
        return dict(self._tiles(self.leaf_hashes[:size], tiles))

    async def nodes(self, level, tiles, size):
        """Return tiles of nodes."""
        return dict(self._tiles(self.levels[level - 1][:size], tiles))

    async def stored(self):
        """Return how many there are."""
        return {number: len(level) for number, level in enumerate(self.levels, 1) if level}

    async def forget(self):
        """Remember that somebody asked."""
        self.is_forgotten = True

    def _tiles(self, hashes, tiles) -> Iterator[tuple[int, bytes]]:
        for tile in tiles:
            self.asked += 1
            if found := b"".join(hashes[tile * 256 : tile * 256 + 256]):
                yield tile, found


LEAVES = [sha256(number.to_bytes(4)).digest() for number in range(SIZE)]


@pytest.fixture(scope="module")
def whole():
    """Return a tree of all leaves."""
    return MerkleTree(LEAVES)


def hashes_of(stored=(259, 1)):
    """Return a store of the tree."""
    return MemoryHashes(LEAVES, stored)


def test_proofs_are_those_of_the_whole_tree(whole):
    """At sizes around the borders of tiles, whatever is stored of the nodes yet."""
    sizes = (1, 2, 255, 256, 257, 300, 511, 512, 65_536, 65_537, SIZE)
    with every_row() as row:
        for size in sizes:
            with row("size", size):
                asyncio.run(_compare(whole, size))


async def _compare(whole, size):
    last, root = size >> 8, whole.root(size)
    few = {(last, last >> 8), (last - 2, 0)}  # to make more costs tens of milliseconds
    for stored in few if size > 512 else {(), (last // 2,), *few} - {(last - 2, 0)}:
        tree = SignedTree(hashes_of(stored), size, root)
        positions = sorted({1, size, size // 2 + 1, size // 256 * 256 or 1, max(size - 255, 1)})
        for position, proof in zip(positions, await tree.inclusion_proofs(positions), strict=True):
            assert proof == whole.inclusion_proof(position - 1, size)
        for old in {0, 1, size // 3, size & ~255, size - 1, size}:
            proof = await tree.consistency_proof(old)
            assert proof == whole.consistency_proof(old, size)
            edge = CompactRange(old, await tree.edge_at(old))
            assert edge.root() == whole.root(old)


async def test_a_proof_reads_a_tile_of_each_level(whole):
    """And the right edge: neither the log nor what lies between."""
    hashes = hashes_of()
    tree = SignedTree(hashes, SIZE, whole.root())
    (proof,) = await tree.inclusion_proofs([12_345])
    leaf = hashes.leaf_hashes[12_344]
    assert root_by_inclusion(leaf, 12_344, SIZE, proof) == whole.root()
    assert hashes.asked == 5
    proof = await tree.consistency_proof(50_000)
    assert is_consistent(50_000, whole.root(50_000), SIZE, whole.root(), proof)
    assert hashes.asked == 6


async def test_nodes_that_are_altered_are_made_anew(whole):
    """Whichever it is, the proofs are right, and the stored ones are forgotten."""
    for level, index in ((1, 48), (2, 0)):
        hashes = hashes_of()
        hashes.levels[level - 1][index] = bytes(32)
        tree = SignedTree(hashes, SIZE, whole.root())
        for position in (12_345, 66_000, 1):
            (proof,) = await tree.inclusion_proofs([position])
            assert proof == whole.inclusion_proof(position - 1, SIZE)
        assert hashes.is_forgotten
    hashes = hashes_of()
    hashes.levels[0].pop(7)
    (proof,) = await SignedTree(hashes, SIZE, whole.root()).inclusion_proofs([1])
    assert (proof, hashes.is_forgotten) == (whole.inclusion_proof(0, SIZE), True)


async def test_who_may_make_none_has_altered_nodes_forgotten(whole):
    """So that the worker makes them anew: nobody else may come who does."""
    hashes = hashes_of()
    hashes.levels[0][48] = bytes(32)
    with pytest.raises(NodesBehind):
        await SignedTree(hashes, SIZE, whole.root(), made_max=0).inclusion_proofs([12_345])
    assert hashes.is_forgotten
    hashes = hashes_of((259,))
    with pytest.raises(NodesBehind):
        await SignedTree(hashes, SIZE + 256, whole.root(), made_max=0).inclusion_proofs([1])
    assert not hashes.is_forgotten, "they are behind, and no more"


async def test_leaves_that_are_altered_lead_to_no_proof(whole):
    """The nodes are kept: they are those of what was signed."""
    for stored, position, said, named in (
        ((259, 1), 12_345, "positions 12289 to 12544 do not lead", 12_289),
        ((259, 1), SIZE, "does not make the checkpoint's root", 1),
    ):
        hashes = hashes_of(stored)
        hashes.leaf_hashes[position - 1] = bytes(32)
        tree = SignedTree(hashes, SIZE, whole.root())
        for _ in range(2):
            with pytest.raises(TreeAltered, match=said) as found:
                await tree.inclusion_proofs([position])
            assert found.value.position == named
        assert not hashes.is_forgotten


async def test_a_log_with_a_gap_leads_to_no_proof(whole):
    """It says where."""
    for stored in ((), (259, 1)):
        hashes = hashes_of(stored)
        del hashes.leaf_hashes[SIZE - 3 :]
        tree = SignedTree(hashes, SIZE, whole.root())
        with pytest.raises(TreeAltered, match="positions are missing among 66305 to 66321"):
            await tree.inclusion_proofs([1])
