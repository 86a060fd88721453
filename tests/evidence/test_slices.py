"""The worker verifies the whole log in slices, and signs nothing over what it found."""

from datetime import timedelta
from uuid import uuid4

import pytest

from service.evidence.checkpoints.divergence import begin_lineage
from service.evidence.checkpoints.finding import NOT_OURS, finding
from service.evidence.checkpoints.log_tree import LedgerForked, extended
from service.evidence.log_pass import FAULTY_SECONDS
from service.evidence.verify import slices as module
from service.evidence.verify.people import People
from service.evidence.verify.slices import Slices
from service.ledger.events import Cause
from service.ledger.merkle import CompactRange
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import ALTER, KEY, REHASH, checkpointed, forked, lose
from tests.ledger.appending import approved
from tests.tables import every_row

DAY = 86_400
AWAY = "update accounts.log set append_id = -append_id where position in ({0}, {1})"
EXCHANGE = """
update accounts.log as l set append_id = -o.append_id from accounts.log as o
where l.position in ({0}, {1}) and o.position in ({0}, {1}) and l.position <> o.position
"""
FLOOD = """
insert into accounts.checkpoints (origin, size, note, tree)
select %s, size, 'x', '' from generate_series(%s::bigint, %s) as size
"""


class Days:
    """A clock of the ledger, moved by hand."""

    def __init__(self, ledger):
        self.seconds, began = 0.0, ledger.clock()
        ledger.clock = lambda: began + timedelta(seconds=self.seconds)


def slices_of(accounts, *more):
    """Return the slices of the ledger of accounts."""
    return Slices(accounts, [KEY], DAY, People(accounts), *more)


@pytest.fixture
def days(accounts):
    """Return the clock."""
    return Days(accounts)


@pytest.fixture
async def slices(accounts, checkpoints, add, monkeypatch):
    """Return the slices, of two events each, of a log with checkpoints of 1, 3 and 5 of 6."""
    monkeypatch.setattr(module, "SLICE_SECONDS", -1)
    monkeypatch.setattr(module, "EVENTS_MAX", 2)
    for count in (2, 2, 1):
        await checkpoints.make()
        await add(count)
    await Sequencer(accounts).number_committed()
    return slices_of(accounts)


async def passes(slices):
    """Return the sizes of the slices of a whole pass."""
    sizes = []
    while size := await slices.slice():
        sizes.append(size)
    return sizes


async def test_all_of_the_log_is_verified_within_a_day(slices, accounts, days, owner):
    """A slice after the other, whichever process makes it; then it rests for half of the day."""
    assert (await finding(accounts)).verified_at is None
    first = await slices.slice()
    assert (first, await passes(slices_of(accounts))) == (2, [2, 2])
    assert await finding(accounts) == (accounts.clock(), None, None, True)
    days.seconds = DAY / 2 - 1
    assert await passes(slices) == []
    days.seconds = DAY / 2
    assert await passes(slices) == [2, 2, 2]
    owner.execute("update accounts.log_verification set began_at = began_at + interval '1 year'")
    assert await passes(slices) == [2, 2, 2], "nobody but this service says that it was verified"


def cases():
    """Return changes, how each is undone, where the fault is, and what is said of it."""
    mend = ALTER.replace("'system:dev'", "'system:x'").replace("'system:dew'", "'system:dev'")
    mend = mend.replace("'system:x'", "'system:dew'")
    for at in (4, 6):
        undo = (mend.format(at), REHASH.format(at))
        yield [ALTER.format(at)], undo, at, f"position {at} is not the one that was hashed"
        both = [ALTER.format(at), REHASH.format(at)]
        yield both, undo, at, f"position {at} was not written by this service"
    position = "update accounts.log set position = {} where position = {}"
    yield [position.format(99, 3)], [position.format(3, 99)], 3, "position 3 is missing"
    note = "update accounts.checkpoints set note = replace(note, '{}', '{}') where size = 5"
    yield [note.format("— ", "— x")], [note.format("— x", "— ")], 5, "of 5 events is not sound"
    head = "update accounts.head set tree = substring(tree || tree from {} for octet_length(tree))"
    yield [head.format(2)], [], 6, "The tree in the head"


async def test_what_was_altered_is_found_and_nothing_is_signed_over_it(
    slices, accounts, days, checkpoints, attack
):
    """Until it was mended, and a whole pass found nothing; the last one is left."""
    with every_row() as row:
        for changes, undo, position, said in cases():
            with row(said):
                days.seconds += DAY
                attack(*changes)
                await passes(slices)
                found = await finding(accounts)
                assert (found.position, said in found.fault) == (position, True), found
                with pytest.raises(LedgerForked, match="the log was altered"):
                    await checkpoints.make()
                if undo:
                    attack(*undo)
                    days.seconds += FAULTY_SECONDS
                    await passes(slices)
                    assert (await finding(accounts)).fault is None


async def test_what_is_set_aside_hides_no_larger_checkpoint(
    accounts, checkpoints, add, attack, owner, monkeypatch
):
    """Whoever has the ledger's login can write any number of rows of a lineage that was lost."""
    monkeypatch.setattr(module, "_BEYOND_MAX", 2)
    await add(7)
    lost = (await checkpoints.make()).checkpoint
    await lose(owner, attack, 3)
    await begin_lineage(checkpoints, "a restore", Cause("staff:test", "req_test"), force=False)
    await Sequencer(accounts).number_committed()
    size, tree = owner.execute("select size, tree from accounts.head").fetchone()
    assert size < lost.size
    await checkpointed(checkpoints, add, 4)
    owner.execute("update accounts.head set size = %s, tree = %s", [size, tree])
    owner.execute(FLOOD, [lost.origin, size + 1, lost.size - 1])
    await passes(slices_of(accounts))
    found = await finding(accounts)
    assert (found.position, "A checkpoint covers" in (found.fault or "")) == (size + 1, True), found


async def test_what_somebody_else_says_was_found_stops_nothing(
    slices, accounts, checkpoints, owner
):
    """Whoever has the ledger's login can write that row: it is seen, and verified anew at once."""
    await passes(slices)
    at = "update accounts.log_verification set fault_position = 1, fault = 'forged'"
    alter = "update accounts.log_verification set "
    dates = [f"{alter} finished_at = '4000-01-01 BC'", f"{alter} began_at = '20000-01-01'"]
    for change in (at, f"{at}, mac = null", f"{alter} size = size + 1", *dates):
        owner.execute(change)
        found = await finding(accounts)
        assert (found.is_ours, found.verified_at, found.position) == (False, None, None)
        assert found.fault == NOT_OURS
        await checkpoints.make()
        assert await passes(slices)
        assert (await finding(accounts))[2:] == (None, True)


async def test_the_order_within_streams_is_signed_and_verified(
    slices, accounts, days, checkpoints, attack, owner
):
    """Positions can be exchanged without a key, and MACs do not say where an event stands."""
    await passes(slices)
    async with accounts.transaction() as transaction:
        await transaction.append(approved(uuid4(), 0, count=2))
    await Sequencer(accounts).number_committed()
    (size,) = owner.execute("select size from accounts.head").fetchone()
    attack(AWAY.format(size - 1, size), EXCHANGE.format(size - 1, size))
    attack(REHASH.format(size - 1), REHASH.format(size))
    rows = owner.execute("select leaf_hash from accounts.log order by position")
    tree = await extended(CompactRange(), b"".join(row[0] for row in rows))
    attack("update accounts.head set tree = '\\xTREE'".replace("TREE", tree.to_bytes().hex()))
    await forked(checkpoints, f"position {size - 1} is not behind the one before it in its stream")
    days.seconds += DAY
    await passes(slices)
    found = await finding(accounts)
    assert (found.position, "not behind the one before it" in found.fault) == (size - 1, True)


async def test_a_statement_that_changes_the_log_has_it_verified_at_once(
    slices, accounts, days, attack, owner
):
    """PostgreSQL counts what is changed or removed where rows are only added."""
    await passes(slices)
    days.seconds = 60
    assert await passes(slices) == []
    attack(ALTER.format(2))
    owner.execute("select pg_stat_force_next_flush()")
    owner.execute("select")
    days.seconds = 120
    assert await passes(slices)
    assert (await finding(accounts)).position == 2


async def test_a_worker_rests_between_slices(accounts, monkeypatch):
    """A quarter of a processor at most, and nothing at its start."""
    now = [1000.0]
    worker = slices_of(accounts, lambda: now[0])
    looked: list[float] = []

    async def slice_of_two_seconds():
        looked.append(now[0])
        now[0] += 2
        return len(looked) < 3

    monkeypatch.setattr(worker, "slice", slice_of_two_seconds)
    for _ in range(200):
        assert not await worker.step()
        now[0] += 1
    assert [round(at) for at in looked] == [1030, 1038, 1046, 1106, 1166]
