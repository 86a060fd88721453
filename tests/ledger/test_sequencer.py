import asyncio
from contextlib import suppress
from uuid import uuid4

import pytest

from service.facts.catalogue import ACCOUNTS
from service.ledger.database import LedgerUnavailable
from service.ledger.sequencer import BATCH_MAX, Sequencer
from service.ledger.writing import Append
from tests.ledger.appending import append
from tests.ledger.samples import CAUSE, plain
from tests.patience import PATIENCE_SECONDS, eventually

APPROVED = plain(ACCOUNTS["PartnerApproved"])
XIDS = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
LOG = (
    "select l.position, l.append_id, e.originator_id, e.originator_version"
    " from accounts.log as l join accounts.events as e using (append_id) order by l.position"
)


def events(stream, version=0, count=1):
    """Return an append of events that no projector minds."""
    return Append(stream, version, [APPROVED] * count, CAUSE)


async def number_everything(*sequencers):
    """Step until nothing is left to number."""
    while sum(await asyncio.gather(*(one.step() for one in sequencers))):
        pass


def check_log(owner, size):
    """Positions without a gap, and each stream in the order of its versions."""
    rows = owner.execute(LOG).fetchall()
    assert [row[0] for row in rows] == list(range(1, size + 1))
    last = {}
    for _, _, stream, version in rows:
        assert version == last.get(stream, 0) + 1
        last[stream] = version
    assert owner.execute("select size from accounts.head").fetchone() == (size,)
    assert owner.execute("select count(*) from accounts.pending").fetchone() == (0,)


async def test_committed_events_get_the_next_positions(accounts, owner):
    """Numbering follows the order of appending, a batch after another."""
    stream, sequencer = uuid4(), Sequencer(accounts)
    await append(accounts, events(stream, 0, 3))
    assert await sequencer.step() == 3
    await append(accounts, events(stream, 3))
    assert (await sequencer.lag()).waiting == 1
    assert await sequencer.step() == 1
    assert await sequencer.step() == 0
    check_log(owner, 4)
    assert await sequencer.lag() == (0, None, 4)


async def test_the_lag_tells_how_long_the_oldest_waits(accounts):
    """The age comes from the oldest waiting event's own time."""
    (recorded, *_) = await append(accounts, events(uuid4(), 0, 2))
    lag = await Sequencer(accounts).lag()
    assert (lag.waiting, lag.oldest_at, lag.size) == (2, recorded.meta.at, 0)


async def test_a_slow_transaction_and_a_rollback_leave_no_gap(accounts, owner):
    """500 appends are numbered beside a transaction that stays open, which follows later."""
    sequencers = [Sequencer(accounts) for _ in range(3)]
    slow, streams = uuid4(), [uuid4() for _ in range(50)]
    async with accounts.transaction(background=PATIENCE_SECONDS) as transaction:
        await transaction.append(events(slow))
        appending = asyncio.gather(*(_append_one_by_one(accounts, one, 10) for one in streams))
        await _number_until(appending, sequencers)
        check_waiting = owner.execute("select size from accounts.head").fetchone()
        with pytest.raises(ZeroDivisionError):
            await _rolled_back(accounts)
    await append(accounts, events(uuid4()))
    await number_everything(*sequencers)
    assert check_waiting == (500,)
    check_log(owner, 502)


async def test_an_idle_step_draws_no_transaction_id(accounts, owner):
    """Polling an idle ledger costs reads alone."""
    sequencer = Sequencer(accounts)
    await append(accounts, events(uuid4()))
    await number_everything(sequencer)
    before = owner.execute(XIDS).fetchone()[0]
    for _ in range(200):
        assert await sequencer.step() == 0
    # The server's own housekeeping may draw a few; each of 200 steps would be seen.
    assert owner.execute(XIDS).fetchone()[0] - before < 20


async def test_whoever_finds_the_ledger_held_goes_on(accounts, owner):
    """While another process numbers, a step does not wait and numbers nothing."""
    await append(accounts, events(uuid4()))
    sequencer = Sequencer(accounts)
    with owner.transaction():
        owner.execute("select from accounts.head for update")
        assert await sequencer.step() == 0
    assert await sequencer.step() == 1


@pytest.mark.parametrize("stage", ["before it numbers", "before it commits"])
async def test_a_sequencer_killed_in_mid_batch_leaves_nothing_behind(
    accounts, owner, monkeypatch, stage
):
    """Its numbers come back with the rollback, and the next step gives them out again."""
    await append(accounts, events(uuid4(), 0, 20))
    sequencer = Sequencer(accounts)
    with monkeypatch.context() as patch:
        table = "accounts.pending" if stage == "before it numbers" else "accounts.log"
        _kill_when_it_writes(owner, table)
        patch.setattr("service.ledger.sequencer.BATCH_MAX", 10)
        with pytest.raises(LedgerUnavailable):
            await sequencer.step()
    owner.execute(f"drop trigger killed on {table}")
    assert owner.execute("select count(*) from accounts.log").fetchone() == (0,)
    await number_everything(sequencer)
    check_log(owner, 20)


async def test_a_batch_is_bounded(accounts, owner):
    """A backlog is numbered in transactions of a bounded size."""
    await append(accounts, events(uuid4(), 0, BATCH_MAX + 5))
    sequencer = Sequencer(accounts)
    assert [await sequencer.step() for _ in range(3)] == [BATCH_MAX, 5, 0]
    check_log(owner, BATCH_MAX + 5)


async def test_a_batch_is_bounded_in_bytes(accounts, owner, monkeypatch):
    """Hashing reads the states: large events are numbered a few at a time, at least one."""
    monkeypatch.setattr("service.ledger.sequencer.BATCH_BYTES_MAX", 1, raising=False)
    await append(accounts, events(uuid4(), 0, 3))
    sequencer = Sequencer(accounts)
    assert [await sequencer.step() for _ in range(4)] == [1, 1, 1, 0]
    check_log(owner, 3)


SLOW_HASH = """
create or replace function accounts.leaf_hash(
    log_position bigint, append_id bigint, originator_id uuid, originator_version bigint,
    topic text, state bytea
) returns bytea language plpgsql volatile as $$
begin
    perform pg_sleep(0.05);
    return sha256(state);
end $$
"""


async def test_a_backlog_on_a_slow_disk_is_numbered_in_smaller_batches(
    accounts, owner, monkeypatch
):
    """A batch that outlasts its deadline is halved and not repeated, until one fits."""
    monkeypatch.setattr("service.ledger.sequencer.BATCH_SECONDS_MAX", 0.75)
    monkeypatch.setattr("service.ledger.sequencer.BATCH_MAX", 32)
    owner.execute(SLOW_HASH)  # as if each event took 50 ms to read
    await append(accounts, events(uuid4(), 0, 32))
    sequencer = Sequencer(accounts)

    async def numbered():
        with suppress(LedgerUnavailable):
            await sequencer.step()
        return (await sequencer.lag()).size == 32

    await eventually(numbered)
    check_log(owner, 32)


async def _append_one_by_one(ledger, stream, count):
    for version in range(count):
        await append(ledger, events(stream, version))


async def _number_until(appending, sequencers):
    while not appending.done():
        await asyncio.gather(*(one.step() for one in sequencers))
        await asyncio.sleep(0)
    await appending
    await number_everything(*sequencers)


async def _rolled_back(ledger):
    async with ledger.transaction() as transaction:
        await transaction.append(events(uuid4()))
        raise ZeroDivisionError


def _kill_when_it_writes(owner, table):
    """End the backend of whoever writes to the table, in the middle of its statement."""
    owner.execute(
        "create or replace function public.end_me() returns trigger language plpgsql"
        " security definer as $$ begin perform pg_terminate_backend(pg_backend_pid());"
        " perform pg_sleep(5); return null; end $$"
    )
    change = "delete" if table.endswith("pending") else "insert"
    owner.execute(
        f"create trigger killed after {change} on {table}"
        " for each statement execute function public.end_me()"
    )


async def test_a_damaged_event_hides_no_other_figure(accounts, owner):
    """Where the oldest waiting event cannot be read, its age is unknown and the rest is told."""
    await append(accounts, events(uuid4(), 0, 2))
    owner.execute("alter table accounts.events disable trigger append_only")
    owner.execute("update accounts.events set state = 'no json'")
    assert await Sequencer(accounts).lag() == (2, None, 0)
