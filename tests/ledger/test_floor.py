"""What is numbered already costs no look at the queue, and nothing is left there for that."""

from contextlib import contextmanager
from types import SimpleNamespace
from uuid import uuid4

import psycopg
import pytest

from service.facts.catalogue import ACCOUNTS
from service.ledger import floor as floors
from service.ledger.floor import LOWEST, Floor
from service.ledger.sequencer import Sequencer
from service.ledger.writing import Append
from tests.ledger.samples import CAUSE, plain

APPROVED = plain(ACCOUNTS["PartnerApproved"])
BATCHES, BATCH = 4, 300
READ = (
    "select idx_tup_read from pg_stat_all_indexes"
    " where indexrelid = 'accounts.pending_pkey'::regclass"
)
DRAW = "select nextval(pg_get_serial_sequence('accounts.events', 'append_id'))"
ASIDE = "select count(*) from accounts.set_aside"


@pytest.fixture(autouse=True)
def marks_count(monkeypatch):
    """Trust a mark at once."""
    monkeypatch.setattr(floors, "MARK_SECONDS", 0.0)


async def append(ledger, stream, version=0, count=1):
    """Append events to a stream; return the first one's id."""
    async with ledger.transaction() as transaction:
        first, *_ = await transaction.append(Append(stream, version, [APPROVED] * count, CAUSE))
    return first.append_id


async def idle(sequencer):
    """Step often enough for the floor to be raised to what has a number."""
    for _ in range(6):
        assert await sequencer.step() == 0


async def rows_read(ledger, owner):
    """Return how many entries of the queue's index were read so far, dead rows included."""
    for pool in (ledger.database.background, ledger.database.reads):
        async with pool.connection() as connection:
            await connection.execute("select pg_stat_force_next_flush()")
    return owner.execute(READ).fetchone()[0]


@contextmanager
def snapshot(url):
    """Hold a snapshot, for which every dead row is kept."""
    with psycopg.connect(url) as stranger:
        stranger.execute("set transaction isolation level repeatable read")
        stranger.execute("select count(*) from accounts.events")
        yield


async def test_dead_rows_are_not_passed_again(accounts, owner, database_url):
    """Under a snapshot that is held, neither looks nor numbering take longer with each event."""
    sequencer = Sequencer(accounts)
    with snapshot(database_url):
        for _ in range(BATCHES):
            await append(accounts, uuid4(), count=BATCH)
            assert await sequencer.step() == BATCH
        await idle(sequencer)
        before = await rows_read(accounts, owner)
        await idle(sequencer)
        looked = await rows_read(accounts, owner)
        await append(accounts, uuid4())
        assert await sequencer.step() == 1
        numbered = await rows_read(accounts, owner)
    assert looked - before < BATCH
    assert numbered - looked < BATCH


async def test_the_lag_passes_a_bounded_number_of_dead_rows(
    accounts, owner, database_url, monkeypatch
):
    """Of whatever a snapshot keeps; what waits at the end of the log is counted."""
    monkeypatch.setattr("service.ledger.sequencer.LAG_POSITIONS", 10)
    sequencer = Sequencer(accounts)
    with snapshot(database_url):
        for _ in range(BATCHES):
            await append(accounts, uuid4(), count=BATCH)
            await sequencer.step()
        await append(accounts, uuid4(), count=2)
        before = await rows_read(accounts, owner)
        lag = await sequencer.lag()
        read = await rows_read(accounts, owner) - before
    assert (lag.waiting, lag.oldest_at is None, lag.size) == (2, False, BATCHES * BATCH)
    assert read < BATCH


async def test_what_commits_late_is_numbered_at_once(accounts):
    """Its id is lower than those that have numbers: the floor stays below it while it is open."""
    sequencer = Sequencer(accounts)
    async with accounts.transaction() as transaction:
        await transaction.append(Append(uuid4(), 0, [APPROVED], CAUSE))
        for _ in range(3):
            await append(accounts, uuid4())
            assert await sequencer.step() == 1
            await idle(sequencer)
    assert await sequencer.step() == 1


@pytest.fixture
async def put_back(accounts, owner):
    """Return a sequencer, and a stream whose event is queued below its floor."""
    sequencer, stream = Sequencer(accounts), uuid4()
    removed = await append(accounts, stream)
    owner.execute("delete from accounts.pending")
    await append(accounts, uuid4())
    assert await sequencer.step() == 1
    await idle(sequencer)
    owner.execute("insert into accounts.pending values (%s)", [removed])
    await idle(sequencer)
    return sequencer, stream


async def test_the_floor_is_not_trusted_for_long(put_back, monkeypatch):
    """What somebody puts below it is found by a look without a floor, and then numbered."""
    sequencer, _ = put_back
    monkeypatch.setattr(floors, "LOOK_BACK_SECONDS", 0.0)
    assert await sequencer.step() == 1


async def test_all_that_has_committed_is_numbered_for_whoever_asks(accounts, put_back):
    """A checkpoint waits for everything, whatever a floor says."""
    sequencer, _ = put_back
    await sequencer.number_committed()
    assert (await Sequencer(accounts).lag()).waiting == 0


async def test_nothing_is_set_aside_because_of_a_floor(accounts, owner, put_back):
    """An event whose predecessor waits below the floor is numbered behind it."""
    sequencer, stream = put_back
    await append(accounts, stream, 1)
    assert await sequencer.step() == 2
    assert owner.execute(ASIDE).fetchone() == (0,)


async def test_a_mark_is_trusted_when_it_is_some_seconds_old(accounts, monkeypatch):
    """A transaction draws an event's id a moment before it can be seen to have begun."""
    monkeypatch.setattr(floors, "MARK_SECONDS", 3_600.0)
    floor, sequencer = Floor(accounts.database), Sequencer(accounts)
    numbered = await append(accounts, uuid4())
    assert await sequencer.step() == 1
    async with accounts.database.background.connection() as connection:
        for _ in range(3):
            assert not await floor.waits(connection)
        assert floor.append_id == LOWEST
        monkeypatch.setattr(floors, "MARK_SECONDS", 0.0)
        for _ in range(2):
            assert not await floor.waits(connection)
    assert floor.append_id == numbered


async def test_the_floor_stays_below_an_id_whose_transaction_begins_after_the_mark(
    accounts, owner, database_url
):
    """However long it is open: who has begun is noted only some seconds after the mark."""
    floor, sequencer = Floor(accounts.database), Sequencer(accounts)
    (drawn,) = owner.execute(DRAW).fetchone()
    numbered = await append(accounts, uuid4())
    assert await sequencer.step() == 1
    async with accounts.database.background.connection() as connection:
        assert not await floor.waits(connection)
        with psycopg.connect(database_url) as late:
            late.execute("select pg_current_xact_id()")
            for _ in range(3):
                assert not await floor.waits(connection)
            assert floor.append_id < drawn < numbered
        assert not await floor.waits(connection)
    assert floor.append_id == numbered


async def test_a_mark_is_not_older_than_what_was_seen(accounts, owner, database_url, monkeypatch):
    """A look below the floor passes all dead rows: meanwhile, a transaction begins unseen."""
    floor, sequencer, now = Floor(accounts.database), Sequencer(accounts), [1000.0]
    monkeypatch.setattr(floors, "monotonic", lambda: now[0])
    await append(accounts, uuid4())
    assert await sequencer.step() == 1
    async with accounts.database.background.connection() as connection:
        for _ in range(3):
            assert not await floor.waits(connection)
        assert floor.append_id > LOWEST
        monkeypatch.setattr(floors, "MARK_SECONDS", 10.0)
        monkeypatch.setattr(floors, "LOOK_BACK_SECONDS", 0.0)
        (drawn,) = owner.execute(DRAW).fetchone()
        await append(accounts, uuid4())
        assert await sequencer.step() == 1
        assert not await floor.waits(connection)
        with psycopg.connect(database_url) as late:

            async def look_for_long(*args):
                late.execute("select pg_current_xact_id()")
                now[0] += 11.0
                return await connection.fetchval(*args)

            slow = SimpleNamespace(fetchrow=connection.fetchrow, fetchval=look_for_long)
            assert not await floor.waits(slow)
            for _ in range(3):
                assert not await floor.waits(connection)
            assert floor.append_id < drawn


async def test_a_row_far_behind_the_log_raises_no_floor(accounts):
    """A ledger's login can put one there, with any id."""
    sequencer = Sequencer(accounts)
    await append(accounts, uuid4())
    assert await sequencer.step() == 1
    async with accounts.database.background.connection() as connection:
        await connection.execute(
            "insert into accounts.log (position, append_id, leaf_hash)"
            " values (1000000000, 1000000000, sha256(''))"
        )
    await idle(sequencer)
    await append(accounts, uuid4())
    assert await sequencer.step() == 1


async def test_the_floor_stays_below_what_has_no_number_yet(accounts):
    """Also where its transaction has ended: it is numbered from there."""
    floor, sequencer = Floor(accounts.database), Sequencer(accounts)
    async with accounts.database.background.connection() as connection:
        async with accounts.transaction() as transaction:
            await transaction.append(Append(uuid4(), 0, [APPROVED], CAUSE))
            numbered = await append(accounts, uuid4())
            assert await sequencer.step() == 1
            for _ in range(2):
                assert not await floor.waits(connection)
        assert await floor.waits(connection)
        assert floor.append_id == LOWEST
        assert await sequencer.step() == 1
        assert not await floor.waits(connection)
    assert floor.append_id == numbered


async def test_a_log_that_was_put_back_is_read_from_its_beginning(accounts):
    """Ids are drawn again there that a process has seen numbered."""
    floor = Floor(accounts.database)
    async with accounts.database.background.connection() as connection:
        floor.append_id = 0
        assert not await floor.waits(connection)
        await append(accounts, uuid4())
        floor.append_id = 1_000_000
        assert await floor.waits(connection)
    assert floor.append_id == LOWEST
