"""The request log: each call once, without delay, bounded, deleted after thirty days."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from structlog.testing import capture_logs

from migrations.apply import SQL, statements
from service.core.clock import system_clock
from service.ledger.database import Database, LedgerUnavailable
from service.request_log import log as request_log
from service.request_log import retention
from service.request_log.log import RequestLog, RequestLogEntry
from service.request_log.reader import PAGE, Filter, RequestsReader
from service.request_log.retention import Retention
from tests.world import settings_for, world_on

NOW = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)


def call(number, **more):
    """Return an entry of one partner."""
    given = {
        "request_id": f"req_{number:05}",
        "partner_id": "ptn_1",
        "key_id": "key_1",
        "at": NOW - timedelta(seconds=number),
        "method": "POST",
        "route": "/v1/claims",
        "status": 201,
        "code": "",
        "duration_ms": 1.5,
    } | more
    return RequestLogEntry(**given)


def log_on(world, dropped=None):
    """Return a request log on the world's database."""
    modes = {mode: one.ledger.database for mode, one in world.service.modes.items()}
    dropped = [] if dropped is None else dropped
    return RequestLog(world.service.accounts.database, modes, dropped.append)


def reader(world, mode="live"):
    """Return a reader at a fixed moment."""
    return RequestsReader(world.service.modes[mode].ledger.database, lambda: NOW)


async def ids(world, wanted=None, partner_id="ptn_1", before=None):
    """Return the ids on a page."""
    found = await reader(world).page(partner_id, wanted or Filter(), before)
    return [row["request_id"] for row in found.calls]


async def test_a_call_is_written_once(world):
    """A batch whose answer was lost is written again and counts once."""
    log = log_on(world)
    for _ in range(2):
        log.add("live", call(1))
        await log.flush()
    assert await ids(world) == ["req_00001"]
    (seen,) = await reader(world).seen("ptn_1")
    assert (seen["requests"], seen["first_at"]) == (1, call(1).at)
    (minute,) = await reader(world).usage("ptn_1", NOW - timedelta(hours=1), "minute")
    (hour,) = await reader(world).usage("ptn_1", NOW - timedelta(hours=1), "hour")
    assert minute["requests"] == hour["requests"] == 1


async def test_an_hour_is_one_row_of_each_endpoint(world):
    """Whatever keys and codes there are: a page of usage reads no more than it shows."""
    log = log_on(world)
    for number, (key, status) in enumerate(product(["key_1", "key_2"], [201, 400, 409, 429]), 1):
        code = "" if status == 201 else f"code_{status}"
        log.add("live", call(number, key_id=key, status=status, code=code))
        if number % 3 == 0:
            await log.flush()
    await log.flush()
    (hour,) = await reader(world).usage("ptn_1", NOW - timedelta(hours=1), "hour")
    assert dict(hour) == {
        "slot": NOW - timedelta(hours=1),
        "method": "POST",
        "route": "/v1/claims",
        "requests": 8,
        "limited": 2,
        "refused": 4,
    }


async def test_the_revision_that_adds_hours_counts_those_of_the_day_before(world, owner):
    """By the counts of minutes, as each call has been counted since."""
    log, now = log_on(world), system_clock()
    every = product(["key_1", "key_2"], [201, 400, 429], ["/v1/claims", "/v1/events"], [0, 90])
    for number, (key_id, status, route, minutes) in enumerate(every):
        at, code = now - timedelta(minutes=minutes), "" if status == 201 else f"code_{status}"
        log.add("live", call(number, key_id=key_id, status=status, route=route, at=at, code=code))
    await log.flush()
    hours = "select * from live.request_hours order by hour, route"
    counted = owner.execute(hours).fetchall()
    owner.execute("delete from live.request_hours")
    *_, fill = statements((SQL / "0044_request_hours.sql").read_text().replace("ledger.", "live."))
    owner.execute(fill)
    assert (len(counted), owner.execute(hours).fetchall()) == (4, counted)


async def test_the_key_remembers_its_last_use(world):
    """A late entry does not move it back."""
    log = log_on(world)
    log.add("live", call(1))
    log.add("test", call(90))
    await log.flush()
    database = world.service.accounts.database
    async with database.writes.connection() as connection:
        used = await connection.fetchval("select used_at from accounts.key_uses")
    assert used == call(1).at


async def test_modes_are_separate(world):
    """A test call is not in live mode's list."""
    log = log_on(world)
    log.add("test", call(1))
    await log.flush()
    assert await ids(world) == []
    assert await reader(world, "test").one("ptn_1", "req_00001")


async def test_anothers_call_is_not_found(world):
    """Another partner's request id looks like an unknown one, in every query."""
    log = log_on(world)
    log.add("live", call(1))
    await log.flush()
    assert await reader(world).one("ptn_2", "req_00001") is None
    assert await reader(world).one("ptn_1", "req_none") is None
    assert await ids(world, partner_id="ptn_2") == []
    assert await reader(world).seen("ptn_2") == []
    assert await reader(world).usage("ptn_2", NOW - timedelta(hours=1), "minute") == []


async def test_pages_follow_each_other(world):
    """Every call comes once, newest first, even if many share a moment."""
    log = log_on(world)
    for number in range(2 * PAGE + 7):
        log.add("live", call(number, at=NOW - timedelta(seconds=number // 20)))
    await log.flush()
    for wanted in (Filter(), Filter(status_class=2)):
        found, before = [], None
        while True:
            page = await reader(world).page("ptn_1", wanted, before)
            found += [(row["at"], row["request_id"]) for row in page.calls]
            before = page.before
            if before is None:
                break
        assert len(found) == 2 * PAGE + 7
        assert found == sorted(set(found), reverse=True)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(code="rate_limited"), ["req_00002"]),
        (Filter(key_id="key_2"), ["req_00003"]),
        (Filter(endpoint="GET /v1/claims"), ["req_00004"]),
        (Filter(status_class=4), ["req_00002", "req_00005"]),
        (Filter(code="entity_not_found", status_class=4, key_id="key_1"), ["req_00005"]),
        (Filter(code="rate_limited", key_id="key_2"), []),
    ],
    ids=str,
)
async def test_filters_combine(world, wanted, expected):
    """Each filter works alone and together with the others."""
    log = log_on(world)
    for entry in (
        call(1),
        call(2, status=429, code="rate_limited"),
        call(3, key_id="key_2"),
        call(4, method="GET", status=200),
        call(5, status=404, code="entity_not_found"),
    ):
        log.add("live", entry)
    await log.flush()
    assert await ids(world, wanted) == expected


async def test_a_filtered_page_looks_through_so_much_and_leads_on(world, monkeypatch):
    """It says from where it looked; together, the pages have each call once, and then they end."""
    monkeypatch.setattr("service.request_log.reader.COUNTS_MAX", 10)
    log = log_on(world)
    for number in range(0, 3000, 20):
        log.add("live", call(number))
    for number in (1, 701, 2001):
        log.add("live", call(number, key_id="key_rare"))
    await log.flush()
    found, before, looked_to = [], None, []
    while before is not None or not looked_to:
        page = await reader(world).page("ptn_1", Filter(key_id="key_rare"), before)
        found += [row["request_id"] for row in page.calls]
        before = page.before
        looked_to.append(page.looked_to)
    assert found == ["req_00001", "req_00701", "req_02001"]
    assert [one and f"{one:%H:%M}" for one in looked_to] == ["11:50", "11:40", "11:29", None]


async def test_excess_entries_are_dropped_and_counted(world, monkeypatch):
    """The oldest are dropped, and the rest is written."""
    monkeypatch.setattr(request_log, "WAITING_MAX", 3)
    dropped = []
    log = log_on(world, dropped)
    for number in range(5):
        log.add("live", call(number))
    await log.flush()
    assert sum(dropped) == 2
    assert await ids(world) == ["req_00002", "req_00003", "req_00004"]


async def test_an_entry_that_cannot_be_written_holds_up_no_other(world):
    """PostgreSQL refuses it for good: it is dropped and counted."""
    dropped = []
    log = log_on(world, dropped)
    log.add("live", call(1, route="\0"))
    await log.flush()
    log.add("live", call(2))
    await log.flush()
    assert dropped == [1]
    assert await ids(world) == ["req_00002"]


async def test_entries_outlast_an_outage_of_postgresql(migrated_clusters, tmp_path):
    """They wait and are written when it returns, at the latest on stopping."""
    with migrated_clusters.server(tmp_path / "postgres") as server:
        settings = settings_for(server.url, tmp_path / "mail")
        async with world_on(settings, tmp_path, follow=False, deadline_seconds=2) as world:
            log = log_on(world)
            log.start()
            log.add("live", call(1))
            server.shutdown_abruptly()
            with pytest.raises(LedgerUnavailable):
                await log.flush()
            log.add("live", call(2))
            server.start()
            await log.stop()
            assert await ids(world) == ["req_00001", "req_00002"]


@pytest.mark.server
async def test_what_a_stop_cannot_write_is_counted():
    """If PostgreSQL does not return, the entries are lost and counted."""
    databases = {
        name: Database("postgresql://nobody@127.0.0.1:1/none", name, pool_size=1, deadline=1)
        for name in ("accounts", "live", "test")
    }
    dropped = []
    modes = {"live": databases["live"], "test": databases["test"]}
    log = RequestLog(databases["accounts"], modes, dropped.append)
    log.start()
    for number in range(3):
        log.add("test", call(number))
    await log.stop()
    assert dropped == [3]


async def test_an_outage_is_logged_when_it_begins_and_ends(world, monkeypatch):
    """Not each second of it, by each process."""
    faults = [LedgerUnavailable()] * 100
    ended = asyncio.Event()

    async def flush():
        if faults:
            raise faults.pop()
        ended.set()

    log = log_on(world)
    monkeypatch.setattr(request_log, "FLUSH_SECONDS", 0)
    monkeypatch.setattr(log, "flush", flush)
    with capture_logs() as lines:
        log.start()
        await ended.wait()
        await log.stop()
    assert [line["event"] for line in lines] == ["request log waits", "request log goes on"]


async def test_a_backlog_is_deleted_in_batches(world, monkeypatch):
    """One run deletes it with several statements."""
    monkeypatch.setattr(retention, "ROWS_MAX", 2)
    log = log_on(world)
    for number in range(5):
        log.add("live", call(number, at=NOW - timedelta(days=40, minutes=number)))
    await log.flush()
    databases = [one.ledger.database for one in world.service.modes.values()]
    assert await Retention(databases, lambda: NOW).delete_expired() == 5 + 5 + 2 + 1
    assert await ids(world) == []


async def test_calls_are_deleted_after_thirty_days(world):
    """Calls and their counts are deleted; younger ones stay."""
    log = log_on(world)
    log.add("live", call(1, at=NOW - timedelta(days=31)))
    log.add("live", call(2, at=NOW - timedelta(days=29)))
    await log.flush()
    databases = [one.ledger.database for one in world.service.modes.values()]
    calls = Retention(databases, lambda: NOW)
    assert await calls.delete_expired() == 4
    assert await calls.delete_expired() == 0
    assert await ids(world) == ["req_00002"]
    (seen,) = await reader(world).seen("ptn_1")
    assert seen["requests"] == 1
    for unit in ("minute", "hour", "day"):
        assert len(await reader(world).usage("ptn_1", NOW - timedelta(days=40), unit)) == 1


async def test_a_clock_that_is_ahead_deletes_nothing(world):
    """By the database's clock, which all processes share, nothing is old."""
    log, now = log_on(world), system_clock()
    log.add("live", call(1, at=now))
    await log.flush()
    databases = [one.ledger.database for one in world.service.modes.values()]
    assert await Retention(databases, lambda: now + timedelta(days=31)).delete_expired() == 0
    assert await ids(world) == ["req_00001"]


async def test_a_partners_call_is_recorded_as_it_was_answered(world):
    """Time, method, route, status, code and key, but nothing that was sent."""
    partner = await world.partner()
    answer = await partner.claim("ent_none", "canary-reference")
    request_id = answer.headers["x-request-id"]
    await world.observed.request_log.flush()  # what a loop does within a second
    row = await reader(world).one(partner.partner_id, request_id)
    assert row is not None
    key_id = partner.keys["live"].split(".")[1]
    assert tuple(row)[1:2] + tuple(row)[3:7] == (
        key_id,
        "POST",
        "/v1/claims",
        404,
        "entity_not_found",
    )
    assert "canary" not in repr(tuple(row))
