"""Nodes that are kept of a log's tree are compared with it, by the worker and by `audit verify`."""

from datetime import timedelta
from uuid import uuid4

import pytest
import structlog

from service.evidence.checkpoints.finding import beside_finding
from service.evidence.log_findings import NOTHING_FOUND, TREE_NODES
from service.evidence.tree.hashes import StoredHashes
from service.evidence.tree.keeper import TreeNodes
from service.evidence.tree.tile import TreeNode, completed_nodes, root_of
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.evidence.verify.people import People
from service.evidence.verify.slices import Slices
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries
from tests.evidence.checkpointing import KEY
from tests.ledger.appending import approved
from tests.tables import every_row

SQL = queries("service.evidence.verify")
COUNT = "select count(*) from accounts.tree_nodes"
ALTER = "update accounts.tree_nodes set hash = sha256('') where level = 1 and node_index = {}"
REMOVE = "delete from accounts.tree_nodes where level = 1 and node_index = {}"
ADD = "insert into accounts.tree_nodes values ({}, {}, sha256(''))"


def test_the_next_leaf_completes_nodes():
    """At each multiple of 256 one of the first level, at each of 65,536 one above it, too."""
    tree, leaves = CompactRange(), [bytes([at % 251]) * 32 for at in range(65_536)]
    found = []
    for leaf in leaves:
        found += completed_nodes(tree, leaf)
        tree.append(leaf)
    tiles = [root_of(b"".join(leaves[at : at + 256])) for at in range(0, 65_536, 256)]
    lowest = [TreeNode(1, number, node) for number, node in enumerate(tiles)]
    assert found == [*lowest, TreeNode(2, 0, root_of(b"".join(tiles)))]
    assert found[-1].positions == (1, 65_536)
    assert found[1].positions == (257, 512)


class Kept:
    """A ledger with kept nodes, whose passes are made by hand."""

    def __init__(self, ledger):
        self.ledger, self.days = ledger, 0
        self.keeper, self.people = TreeNodes(ledger), People(ledger)
        began = ledger.clock()
        ledger.clock = lambda: began + timedelta(days=self.days)

    async def verify(self):
        """Make a whole pass on another day; return what is noted."""
        self.days += 1
        while await Slices(self.ledger, [KEY], 86_400, self.people).slice():
            pass
        return await self.noted()

    async def noted(self):
        """Return what is noted of nodes."""
        return (await beside_finding(self.ledger))[TREE_NODES]

    async def audit(self):
        """Return the verdict of `audit verify`."""
        return await verify_ledger(self.ledger.database, Evidence([KEY]))


@pytest.fixture
async def kept(accounts, checkpoints):
    """Return a ledger of some 770 events, and their three nodes."""
    async with accounts.transaction() as transaction:
        await transaction.append(approved(uuid4(), 0, count=770))
    await checkpoints.make()
    one = Kept(accounts)
    assert await one.keeper.slice() == 3
    return one


async def test_altered_nodes_are_found_made_anew_and_told_of(kept, owner):
    """Until a whole pass has found none; what was not made yet is no finding."""
    with every_row() as row:
        for change, number in (
            (ALTER.format(1), 1),
            (REMOVE.format(0), 0),
            (ADD.format(1, 3), 3),
            (ADD.format(3, 0), None),
        ):
            with row(change):
                assert (await kept.audit()).fault is None
                assert await kept.verify() == NOTHING_FOUND
                owner.execute(change)
                verdict = await kept.audit()
                assert (verdict.ok, "that is kept" in verdict.fault) == (False, True)
                with structlog.testing.capture_logs() as logs:
                    found = await kept.verify()
                assert found.faults == 1
                if number is not None:
                    assert found.fault_position == number * 256 + 1
                assert "tree nodes altered" in [line["event"] for line in logs]
                assert owner.execute(COUNT).fetchone() == (0,)
                assert await kept.verify() == NOTHING_FOUND
                assert await kept.keeper.slice() == 3


async def test_what_is_kept_behind_a_node_is_of_its_level(kept):
    """A level above that has not begun has nothing behind it: nodes below are no finding there."""
    places = ([1, 1, 1, 2], [1, 2, 3, 0])
    rows = await kept.ledger.database.reads.fetch(SQL.kept_nodes, *places)
    assert [(row["hash"] is not None, row["has_others"]) for row in rows] == [
        (True, True),
        (True, False),
        (False, False),
        (False, False),
    ]


async def test_what_a_reader_finds_is_told_of_until_a_whole_pass(kept, owner):
    """It has no key of events, so what it notes has no MAC."""
    await kept.verify()
    await StoredHashes(kept.ledger.database).forget()
    found = await kept.noted()
    assert (found.faults, "when a proof was made" in found.fault) == (1, True)
    assert owner.execute(COUNT).fetchone() == (0,)
    assert await kept.keeper.slice() == 3
    assert await kept.verify() == NOTHING_FOUND


async def test_nothing_is_kept_behind_what_is_being_forgotten(kept, owner):
    """Who changes nodes holds a row: there would be a gap otherwise."""
    owner.execute("delete from accounts.tree_nodes")
    sql = "select from accounts.log_findings where kind = 'tree_nodes' for update"
    async with kept.ledger.database.background.transaction() as connection:
        await connection.execute(sql)
        assert await kept.keeper.slice() == 0
    assert await kept.keeper.slice() == 3
