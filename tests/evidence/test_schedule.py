"""Checkpoints are made on schedule."""

import asyncio
import os
import threading
from datetime import timedelta

import psycopg
import pytest
import structlog

from service.app.background import background
from service.app.bootstrap import Service
from service.archive import directory
from service.evidence.checkpoints.schedule import RETRY_SECONDS, Schedule
from service.evidence.checkpoints.signing import Checkpoints
from service.mail.directory import DirectoryTransport
from tests.evidence.checkpointing import KEY, checkpointed, directory_at, lose, stored_in
from tests.numbering import number
from tests.patience import PATIENCE_SECONDS
from tests.world import settings_for

SECONDS = 300


class Time:
    """A clock of the ledger and of its processes, moved by hand."""

    def __init__(self, ledger) -> None:
        self.seconds = 1000.0
        began = ledger.clock()
        ledger.clock = lambda: began + timedelta(seconds=self.seconds)

    def __call__(self) -> float:
        """Return the seconds."""
        return self.seconds


@pytest.fixture
def add(add, accounts):
    """Return what appends events and numbers them, as a worker does beside its checkpoints."""

    async def numbered(count):
        await add(count)
        await number(accounts)

    return numbered


@pytest.fixture
def time(accounts):
    """Return the time."""
    return Time(accounts)


async def test_the_first_checkpoint_comes_an_interval_after_the_start(checkpoints, add, time):
    """Later ones follow if the log has grown."""
    await add(1)
    schedule = Schedule(checkpoints, SECONDS, time)
    assert await schedule.step() == 0
    time.seconds += SECONDS
    assert await schedule.step() == 1
    assert await schedule.step() is None
    time.seconds += SECONDS
    assert await schedule.step() == 0, "nothing is new"
    await add(1)
    assert await schedule.step() is None, "not yet"
    time.seconds += SECONDS
    assert await schedule.step() == 1
    assert [one.size for one, _ in await stored_in(checkpoints)] == [2, 3]


async def test_an_archive_that_hangs_is_a_failure(checkpoints, add, time, monkeypatch):
    """It is counted, which raises an alarm: the step was waited for without an end."""
    await add(1)
    back = threading.Event()
    monkeypatch.setattr(os, "link", lambda *_names: back.wait())
    monkeypatch.setattr(directory, "CALL_SECONDS_MAX", 0.5)
    schedule = Schedule(checkpoints, SECONDS, time)
    time.seconds += SECONDS
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await schedule.step() == 0
    finally:
        back.set()
    assert (await checkpoints.state()).archive_failures == 1


async def test_between_intervals_nothing_is_queried(checkpoints, time, monkeypatch):
    """A step only looks at the clock."""
    await checkpoints.make()
    schedule = Schedule(checkpoints, SECONDS, time)
    await schedule.step()
    monkeypatch.setattr(checkpoints, "make", None)
    monkeypatch.setattr("service.evidence.checkpoints.schedule.lineages", None)
    time.seconds += SECONDS - 1
    assert await schedule.step() is None


async def test_several_workers_make_one_checkpoint_per_interval(accounts, place, add, time):
    """Their phases do not matter."""
    schedules = []
    for _ in range(5):
        schedules.append(Schedule(Checkpoints(accounts, [KEY], place), SECONDS, time))
        time.seconds += SECONDS / 5
    made = 0
    for _ in range(25):
        time.seconds += SECONDS / 5
        await add(1)
        made += sum([await one.step() or 0 for one in schedules])
    assert made == len(await stored_in(Checkpoints(accounts, [KEY], place)))
    assert 4 <= made <= 6


async def test_what_has_a_number_is_signed_while_the_rest_waits(
    checkpoints, add, time, database_url
):
    """A pass does not wait for a backlog, which may last longer than it could."""
    await checkpoints.make()
    schedule = Schedule(checkpoints, SECONDS, time)
    await add(2)
    time.seconds += SECONDS
    with psycopg.connect(database_url) as numbering:
        numbering.execute("select from accounts.head for update")
        await add(3)
        assert await schedule.step() == 1
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1, 3]
    await number(checkpoints.ledger)
    time.seconds += SECONDS
    assert await schedule.step() == 1
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1, 3, 6]


async def test_events_that_wait_again_are_not_taken_for_lost(checkpoints, add, attack, owner, time):
    """A restore to before they were numbered keeps them, and more is published than has one."""
    await checkpoints.make()
    tree = owner.execute("select tree from accounts.head").fetchone()[0].hex()
    made = await checkpointed(checkpoints, add, 2)
    attack(
        "delete from accounts.checkpoints where size > 1",
        "insert into accounts.pending select append_id from accounts.log where position > 1",
        "delete from accounts.log where position > 1",
        "update accounts.head set size = 1, tree = '\\xTREE'".replace("TREE", tree),
    )
    assert await Schedule(checkpoints, SECONDS, time).step() == 1
    assert not (await checkpoints.state()).forked
    assert await checkpoints.latest() == (made.checkpoint, made.note)


async def test_a_checkpoint_dated_ahead_does_not_stop_signing(checkpoints, add, time):
    """A clock that was wrong for one step delays nothing, and is reported until the next one."""
    await add(1)
    schedule = Schedule(checkpoints, SECONDS, time)
    time.seconds += SECONDS
    right = checkpoints.ledger.clock
    checkpoints.ledger.clock = lambda: right() + timedelta(days=30)
    assert await schedule.step() == 1
    checkpoints.ledger.clock = right
    await add(1)
    wrong, at = await checkpoints.state(), right()
    time.seconds += SECONDS
    with structlog.testing.capture_logs() as logs:
        assert await schedule.step() == 1
    assert wrong.ahead_of(at) == timedelta(days=30)
    assert [line["event"] for line in logs] == ["checkpoint dated ahead"]
    assert (await checkpoints.state()).size == 3
    assert (await checkpoints.state()).ahead_of(right()) == timedelta(0)
    await add(1)
    time.seconds += SECONDS
    with structlog.testing.capture_logs() as logs:
        assert await schedule.step() == 1
    assert logs == []


async def test_clocks_that_differ_by_seconds_do_not_double_checkpoints(accounts, place, add, time):
    """Another worker's checkpoint from a few seconds ahead rests as any other one."""
    await add(1)
    right = accounts.clock
    accounts.clock = lambda: right() + timedelta(seconds=5)
    await Checkpoints(accounts, [KEY], place).make()
    accounts.clock = right
    await add(1)
    assert await Schedule(Checkpoints(accounts, [KEY], place), SECONDS, time).step() == 0


async def test_a_fork_is_reported_at_the_start(checkpoints, add, time, attack, owner):
    """By an error in the log and in the metrics; it is checked again soon."""
    await checkpointed(checkpoints, add, 2, 2)
    await lose(owner, attack, 4)
    schedule = Schedule(checkpoints, SECONDS, time)
    with structlog.testing.capture_logs() as logs:
        assert await schedule.step() == 0
    assert logs == [{"event": "ledger forked", "ledger": "accounts", "log_level": "error"}]
    assert (await checkpoints.state()).forked
    time.seconds += RETRY_SECONDS
    with structlog.testing.capture_logs() as logs:
        assert await schedule.step() == 0
    assert len(logs) == 1


async def test_an_unreachable_archive_is_retried_soon(checkpoints, place, add, time):
    """It logs a warning and is tried again before the interval is over."""
    await checkpoints.make()
    await add(1)
    place.fails = {"names"}
    time.seconds += SECONDS
    schedule = Schedule(checkpoints, SECONDS, time)
    with structlog.testing.capture_logs() as logs:
        assert await schedule.step() == 0
    assert [line["event"] for line in logs] == ["archive unavailable"]
    place.fails = set()
    time.seconds += RETRY_SECONDS
    assert await schedule.step() == 1


async def test_an_empty_archive_is_an_error(checkpoints, accounts, add, time, tmp_path):
    """Nothing is signed or published, and the alarm's counter rises."""
    await checkpoints.make()
    await add(1)
    (tmp_path / "other").mkdir()
    place = directory_at(tmp_path / "other")
    schedule = Schedule(Checkpoints(accounts, [KEY], place), SECONDS, time)
    with structlog.testing.capture_logs() as logs:
        assert await schedule.step() == 0
    assert [line["event"] for line in logs] == ["archive is empty"]
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1]
    assert (await checkpoints.state()).archive_failures == 1
    assert list((tmp_path / "other").iterdir()) == []


async def test_a_missing_key_is_an_error(accounts, place, add, time):
    """A key ring that lost its older keys signs nothing."""
    await Checkpoints(accounts, [KEY], place).make()
    await add(1)
    other = KEY.of_seed("example.com/claim-ledger", b"\x05" * 32)
    schedule = Schedule(Checkpoints(accounts, [other], place), SECONDS, time)
    with structlog.testing.capture_logs() as logs:
        assert await schedule.step() == 0
    assert [line["event"] for line in logs] == ["checkpoint lacks a key"]


@pytest.mark.parametrize(("given", "told"), [({}, 1), ({"ARCHIVE_URL": "file:///published"}, 0)])
def test_a_missing_archive_is_logged_once(database_url, tmp_path, given, told):
    """A worker logs it at its start, once for all ledgers."""
    keys = {"CHECKPOINT_KEYS": KEY.private_text}
    service = Service(
        settings_for(database_url, tmp_path, **keys, **given), deadline_seconds=PATIENCE_SECONDS
    )
    with structlog.testing.capture_logs() as logs:
        background(service, DirectoryTransport(tmp_path))
    events = [line["event"] for line in logs]
    assert events.count("checkpoints are published nowhere") == told


def test_without_keys_there_is_no_schedule(database_url, tmp_path):
    """Nothing is followed for checkpoints, and nothing is logged."""
    service = Service(settings_for(database_url, tmp_path), deadline_seconds=PATIENCE_SECONDS)
    with structlog.testing.capture_logs() as logs:
        followers = background(service, DirectoryTransport(tmp_path))
    assert logs == []
    names = [one.name for one in followers._loops]  # noqa: SLF001 - starts nothing
    assert not [name for name in names if name.endswith("checkpoint")]
