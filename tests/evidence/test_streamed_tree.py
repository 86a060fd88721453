"""A tree that streams by proves what was wanted of it, as the whole tree does."""

from hashlib import sha256

from service.evidence.tree.streamed import StreamedTree
from tests.ledger.merkle_tree import MerkleTree
from tests.tables import every_row

LEAVES = [sha256(number.to_bytes(4)).digest() for number in range(1200)]


async def test_neighbours_are_proved_wherever_they_are():
    """Also where they are the last ones of a page, of a tile or of all."""
    with every_row() as row:
        for size, page, index in (
            *((1, 7, 0), (1, 7, 1), (256, 256, 255), (256, 100, 256), (257, 256, 256)),
            *((1200, 100, 512), (1200, 256, 512), (1200, 512, 512), (1200, 100, 511)),
            *((1200, 1200, 3), (1200, 300, 1200), (1200, 300, 1199), (1024, 512, 1024)),
        ):
            with row(size, page, index):
                tree, whole = StreamedTree(), MerkleTree(LEAVES[:size])
                wanted = [one for one in (index - 1, index) if 0 <= one < size]
                is_wanted = False
                for start in range(0, size, page):
                    if not is_wanted and start + page > index:
                        is_wanted = True
                        for one in {max(index - 1, 0), index}:
                            tree.want(one)
                    tree.extend(b"".join(LEAVES[start : min(start + page, size)]))
                if not is_wanted:
                    tree.want(max(index - 1, 0))
                assert (tree.size, tree.root()) == (size, whole.root())
                proofs = [whole.inclusion_proof(one, size) for one in wanted]
                assert await tree.inclusion_proofs(wanted) == proofs
