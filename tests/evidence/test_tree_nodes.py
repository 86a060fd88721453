"""The worker keeps the inner nodes of a log's tree as it grows."""

from datetime import timedelta

import pytest

from service.evidence.tree.hashes import StoredHashes
from service.evidence.tree.keeper import LOOK_SECONDS, TreeNodes
from service.evidence.tree.signed_tree import SignedTree
from service.evidence.tree.tile import root_of
from tests.ledger.merkle_tree import MerkleTree

NODES = "select level, node_index, hash from accounts.tree_nodes order by level, node_index"


@pytest.fixture
def grow(owner, accounts):
    """Return a function that makes the log longer, and has a checkpoint of all of it."""
    owner.execute("alter table accounts.head disable trigger user")
    ages = iter(range(100, 0, -1))  # clocks may go back

    def run(first, last):
        owner.execute(
            "insert into accounts.log (position, append_id, leaf_hash)"
            " select n, n, sha256(n::text::bytea) from generate_series(%s::int, %s) as n",
            [first, last],
        )
        owner.execute("update accounts.head set size = %s", [last])
        made_at = accounts.clock() + timedelta(seconds=next(ages))
        owner.execute(
            "insert into accounts.checkpoints (origin, size, note, made_at)"
            " values ('o', %s, '', %s)",
            [last, made_at],
        )

    return run


def leaves(owner):
    """Return the leaf hashes, in the order of the log."""
    return [raw for (raw,) in owner.execute("select leaf_hash from accounts.log order by position")]


async def test_nodes_follow_the_log(owner, accounts, grow):
    """Those that are whole, of each level, and each once."""
    keeper = TreeNodes(accounts)
    assert await keeper.slice() == 0
    grow(1, 600)
    owner.execute("update accounts.head set size = 511")
    assert await keeper.slice() == 1, "a log that lost what its checkpoint covers"
    owner.execute("update accounts.head set size = 600")
    assert (await keeper.slice(), await TreeNodes(accounts).slice()) == (1, 0)
    hashes = leaves(owner)
    tiles = [root_of(b"".join(hashes[at : at + 256])) for at in (0, 256)]
    assert owner.execute(NODES).fetchall() == [(1, 0, tiles[0]), (1, 1, tiles[1])]
    owner.execute(
        "insert into accounts.tree_nodes select 1, n, sha256(n::text::bytea)"
        " from generate_series(2, 255) as n"
    )
    grow(65_537, 65_900)
    assert await keeper.slice() == 2, "one of each level"
    level = [hash_ for at, _, hash_ in owner.execute(NODES) if at == 1]
    assert owner.execute(NODES).fetchall()[-1] == (2, 0, root_of(b"".join(level[:256])))


async def test_proofs_are_read_from_it(owner, accounts, grow):
    """And made anew where it was altered; then the worker makes all nodes again."""
    grow(1, 600)
    whole = MerkleTree(leaves(owner))
    keeper, count = TreeNodes(accounts), "select count(*) from accounts.tree_nodes"
    for stored, left in ((0, 0), (2, 2), (2, 0)):
        if left:
            assert await keeper.slice() == stored
        tree = SignedTree(StoredHashes(accounts.database), 600, whole.root())
        proofs = await tree.inclusion_proofs([1, 300, 600])
        assert proofs == [whole.inclusion_proof(at - 1, 600) for at in (1, 300, 600)]
        assert await tree.consistency_proof(77) == whole.consistency_proof(77, 600)
        assert owner.execute(count).fetchone() == (left,)
        owner.execute("update accounts.tree_nodes set hash = sha256('') where node_index = 1")


async def test_an_idle_worker_looks_now_and_then(accounts, grow):
    """It reads a clock otherwise."""
    now = [100.0]
    keeper = TreeNodes(accounts, lambda: now[0])
    assert await keeper.step() == 0
    grow(1, 256)
    assert await keeper.step() is None
    now[0] += LOOK_SECONDS
    assert await keeper.step() == 1
