"""The sequencer's tree over the events as they are stored."""

from itertools import takewhile
from uuid import uuid4

import psycopg
import pytest

from service.facts.partners import PartnerApproved
from service.ledger.database import LedgerError, LedgerUnavailable
from service.ledger.merkle import CompactRange, leaf_hash, leaf_record
from service.ledger.sequencer import Sequencer
from service.ledger.writing import Append
from tests.ledger.samples import CAUSE
from tests.patience import PATIENCE_SECONDS

ROWS = (
    "select l.position, l.append_id, e.originator_id, e.originator_version, e.topic, e.state,"
    " l.leaf_hash from accounts.log as l join accounts.events as e using (append_id)"
    " order by l.position"
)
HEAD = "select size, tree from accounts.head"


async def test_the_log_has_the_hash_of_every_event_and_head_their_tree(accounts, owner):
    """What SQL hashes is what the documented record hashes to; the tree grows batch by batch."""
    sequencer = Sequencer(accounts)
    for count in (1, 4, 8):
        await _append(accounts, count)
        assert await sequencer.step() == count
    rows = owner.execute(ROWS).fetchall()
    assert [row[-1] for row in rows] == [leaf_hash(leaf_record(*row[:-1])) for row in rows]
    expected = CompactRange()
    expected.extend(row[-1] for row in rows)
    assert owner.execute(HEAD).fetchone() == (13, expected.to_bytes())


async def test_a_log_without_a_tree_gets_one(accounts, owner):
    """A log from before there were trees is hashed from its beginning, at the next batch."""
    sequencer = Sequencer(accounts)
    await _append(accounts, 5)
    await sequencer.step()
    (before,) = owner.execute("select tree from accounts.head").fetchone()
    owner.execute("update accounts.head set tree = null")
    await _append(accounts, 1)
    assert await sequencer.step() == 1
    expected = CompactRange.from_bytes(5, before)
    expected.append(owner.execute(ROWS).fetchall()[-1][-1])
    assert owner.execute(HEAD).fetchone() == (6, expected.to_bytes())


async def test_the_tree_of_a_long_log_is_made_in_parts_that_are_kept(accounts, owner, monkeypatch):
    """Whoever is cut off goes on where the last part ended; nothing is numbered before the end."""
    sequencer = Sequencer(accounts)
    await _append(accounts, 11)
    await sequencer.step()
    (before,) = owner.execute("select tree from accounts.head").fetchone()
    owner.execute("update accounts.head set tree = null")
    await _append(accounts, 2)
    monkeypatch.setattr("service.ledger.sequencer.TREE_PART", 4)
    grow, parts = sequencer._grow, []  # noqa: SLF001 - to be cut off there

    async def cut_off(connection, head):
        parts.append(head["part_size"])
        if len(parts) in {3, 4}:
            raise TimeoutError
        await grow(connection, head)

    monkeypatch.setattr(sequencer, "_grow", cut_off)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable):
            await sequencer.step()
        assert owner.execute("select part_size, size, tree from accounts.head").fetchone() == (
            8,
            11,
            None,
        )
    async with accounts.database.writes.transaction() as connection:
        assert await sequencer.number(connection) == 0, "not under the locks of whoever asks"
    assert await sequencer.step() == 2
    assert parts == [0, 4, 8, 8, 8]
    expected = CompactRange.from_bytes(11, before)
    expected.extend(row[-1] for row in owner.execute(ROWS).fetchall()[-2:])
    assert owner.execute(HEAD).fetchone() == (13, expected.to_bytes())


async def test_a_hole_in_an_old_log_makes_no_tree(accounts, owner, monkeypatch):
    """It is an error each time, and no endless search."""
    sequencer = Sequencer(accounts)
    await _append(accounts, 5)
    await sequencer.step()
    owner.execute("update accounts.head set tree = null, size = 7")
    await _append(accounts, 1)
    monkeypatch.setattr("service.ledger.sequencer.TREE_PART", 2)
    with pytest.raises(LedgerError, match="positions up to 6 are missing"):
        await sequencer.step()


async def test_whoever_listens_is_told_once_a_batch(accounts, owner):
    """A stock recorder's subscription waits for this notice."""
    owner.execute("listen stored_events")
    await _append(accounts, 5)
    await Sequencer(accounts).step()
    owner.execute("notify stored_events, 'the end'")
    told = owner.notifies(timeout=PATIENCE_SECONDS)
    assert [one.payload for one in takewhile(lambda one: one.payload != "the end", told)] == [""]


async def test_head_cannot_be_removed(owner):
    """Without its row numbering would stop, and nobody be told."""
    for statement in ("delete from accounts.head", "truncate accounts.head"):
        try:
            owner.execute(statement)
        except psycopg.errors.InsufficientPrivilege as error:
            assert "append-only" in str(error)  # noqa: PT017 - the loop has two statements
        else:
            raise AssertionError(statement)


async def _append(ledger, count):
    async with ledger.transaction() as transaction:
        events = [PartnerApproved(f"ptn_{number}") for number in range(count)]
        await transaction.append(Append(uuid4(), 0, events, CAUSE))
