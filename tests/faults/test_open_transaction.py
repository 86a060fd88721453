"""A transaction that never ends delays nobody, is visible, and raises an alarm."""

import asyncio
import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import uuid4

import psycopg
import pytest
from prometheus_client import CollectorRegistry
from psycopg.rows import dict_row

from service.facts.catalogue import PARTNER_LEDGER
from service.ledger.database import Database, LedgerUnavailable
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.writing import Append
from service.operations.collectors.database import database_collectors
from service.operations.gauges import ScrapedGauges
from tests import runbook
from tests.databases import login_url
from tests.faults.clusters import check_log, metric, unnumbered
from tests.ledger.samples import CAUSE, sample
from tests.patience import eventually
from tests.world import PATIENCE_SECONDS

pytestmark = pytest.mark.followed

LOOK = queries("service.operations.collectors").oldest_transaction
START = datetime(2026, 1, 1, tzinfo=UTC)
FACT = sample(PARTNER_LEDGER["LineageBegun"])
CLAIMS = 60
_HOLDERS = "select a.pid, a.usename, a.application_name"


async def test_a_transaction_that_has_appended_holds_up_nobody(world, database_url):
    """Others append and are numbered meanwhile; it follows once it ends, without a gap."""
    partner, entity_id = await world.connected()
    with psycopg.connect(database_url) as stranger:
        stranger.execute(
            "with e as (insert into live.events (originator_id, originator_version, topic, state)"
            " select originator_id, originator_version + 1000, topic, state from live.events"
            " limit 1 returning append_id) insert into live.pending select append_id from e"
        )
        answers = [await partner.claim(entity_id, f"case-{number}") for number in range(CLAIMS)]
        await _numbered(world)
        size = await metric(world, "claim_ledger_log_size", ledger="live")
        await asyncio.sleep(0.3)
        open_seconds = await metric(world, "claim_ledger_oldest_transaction_seconds")
        stranger.rollback()
    assert {answer.status_code for answer in answers} == {201}
    assert size >= CLAIMS
    assert open_seconds > 0.3
    await _numbered(world)
    assert check_log(database_url, "live") == size
    assert await metric(world, "claim_ledger_oldest_transaction_seconds") < open_seconds


async def test_a_late_commit_is_numbered_after_the_others(world, database_url):
    """Readers never look back: what an hour-long transaction appended first comes last."""
    partner, entity_id = await world.connected()
    ledger, stream = world.service.modes["live"].ledger, uuid4()
    async with ledger.transaction() as transaction:
        # A busy machine takes longer than a session may stand open.
        await transaction.connection.execute("set local idle_in_transaction_session_timeout = 0")
        (late,) = await transaction.append(Append(stream, 0, [FACT], CAUSE))
        for number in range(CLAIMS):
            assert (await partner.claim(entity_id, f"case-{number}")).status_code == 201
        await _numbered(world)
    await _numbered(world)
    size = check_log(database_url, "live")
    with psycopg.connect(database_url) as owner:
        placed = "select position from live.log where append_id = %s"
        assert owner.execute(placed, [late.append_id]).fetchone() == (size,)


async def test_the_runbook_shows_who_keeps_the_sequencer_waiting(world, database_url):
    """Before the sequencer's own session: somebody makes an index by hand, and does not commit."""
    partner, entity_id = await world.connected()
    await _numbered(world)
    with psycopg.connect(database_url) as stranger:
        stranger.execute("create index by_hand on live.log (leaf_hash)")
        assert (await partner.claim(entity_id)).status_code == 201
        with psycopg.connect(database_url, autocommit=True) as owner:
            holders = runbook.block("sql", _HOLDERS).encode()

            def of_both() -> list[tuple]:
                rows = owner.execute(holders).fetchall()
                return rows if len(rows) > 1 else []

            shown = await eventually(of_both)
        assert shown[0][0] == stranger.info.backend_pid
        stranger.rollback()
    await _numbered(world)


async def test_a_snapshot_that_is_held_holds_up_nobody(world, database_url):
    """Dead rows of `pending` cannot be removed meanwhile, but numbering continues."""
    partner, entity_id = await world.connected()
    with psycopg.connect(database_url) as stranger:
        stranger.execute("set transaction isolation level repeatable read")
        seen = stranger.execute("select count(*) from live.events").fetchone()
        for number in range(CLAIMS):
            assert (await partner.claim(entity_id, f"case-{number}")).status_code == 201
        await _numbered(world)
        assert await metric(world, "claim_ledger_log_size", ledger="live") >= CLAIMS
        assert await metric(world, "claim_ledger_oldest_transaction_seconds") > 0
        assert stranger.execute("select count(*) from live.events").fetchone() == seen
    check_log(database_url, "live")


def test_a_prepared_transaction_counts(clusters):
    """No session has it, and it stays open until somebody ends it."""
    cluster = clusters.migrated("one", max_prepared_transactions="1")
    seconds = "select accounts.oldest_transaction_seconds()"
    cluster.execute("begin; select 1; prepare transaction 'forgotten'")
    assert cluster.value(seconds) > 0
    cluster.execute("rollback prepared 'forgotten'")
    assert cluster.value(seconds) == 0


async def test_a_replication_slots_snapshot_counts(clusters):
    """PostgreSQL does not know its age: it counts from when it was seen behind a transaction."""
    cluster = clusters.migrated("one", wal_level="logical")
    cluster.admit_superuser()
    make = "select pg_create_logical_replication_slot('forgotten', 'pgoutput')"
    cluster.execute(make, superuser=True)
    async with _figure(cluster) as (look, database):
        idle = [await look() for _ in range(3)]
        cluster.execute("select pg_current_xact_id()")
        kept = [await look() for _ in range(3)]
        shown = cluster.value(_slots_query())
        restored_away = await database.reads.fetchrow(LOOK, 2**30)
        cluster.execute("select pg_drop_replication_slot('forgotten')", superuser=True)
        dropped = await look()
    assert (idle, kept, dropped) == ([0, 0, 0], [0, 3600, 7200], 0)
    assert (shown, restored_away["is_behind"]) == ("forgotten", False)


def test_the_owner_ends_other_peoples_transactions(clusters):
    """By the commands of the runbook, with what it has a new installation grant to the owner."""
    (grant,) = re.findall(
        r"`(grant [^`]* to claim_ledger)`, as a superuser", runbook.PATH.read_text()
    )
    cluster = clusters.new("one")
    cluster.admit_superuser()
    made = "create role analyst login password 'theirs'"
    cluster.execute(grant, made, superuser=True)
    theirs = f"postgresql://analyst:theirs@{cluster.url.rpartition('@')[2]}"
    look = runbook.block("sql", "select pid, usename, application_name").split(";")[0]
    (end,) = {one for one in runbook.blocks("sql") if one.startswith("select pg_terminate")}
    with (
        psycopg.connect(theirs, autocommit=True) as stranger,
        psycopg.connect(cluster.url, autocommit=True, row_factory=dict_row) as owner,
    ):
        stranger.execute("begin")
        shown = owner.execute(look.encode()).fetchall()
        (pid,) = [
            row["pid"] for row in shown if (row["usename"], row["query"]) == ("analyst", "begin")
        ]
        owner.execute(end.replace("PID", str(pid)).encode())
        with pytest.raises(psycopg.OperationalError):
            stranger.execute("select 1")


async def test_an_event_that_is_not_numbered_shows_its_age(world, database_url):
    """If another session holds the head of a log, the alarm's two metrics show it."""
    partner, entity_id = await world.connected()
    await _numbered(world)
    async with unnumbered(database_url):
        assert (await partner.claim(entity_id, "case-1")).status_code == 201
        await asyncio.sleep(0.5)
        waiting = await metric(world, "claim_ledger_events_pending", ledger="live")
        seconds = await metric(world, "claim_ledger_oldest_pending_seconds", ledger="live")
    assert waiting > 0
    assert seconds >= 0.5
    await _numbered(world)
    assert await metric(world, "claim_ledger_oldest_pending_seconds", ledger="live") == 0


async def test_our_own_forgotten_transaction_is_ended(world, database_url):
    """PostgreSQL ends our session that idles in a transaction; the pool recovers."""
    test = world.service.modes["test"].ledger

    async def forget():
        async with test.database.writes.transaction() as connection:
            limit = await connection.fetchval("show idle_in_transaction_session_timeout")
            assert limit == "10s"
            await connection.execute("set local idle_in_transaction_session_timeout = '100ms'")
            await asyncio.sleep(0.5)
            await connection.fetchval("select 1")

    with pytest.raises(LedgerUnavailable):
        await forget()
    assert await Sequencer(test).step() >= 0
    check_log(database_url, "test")


@asynccontextmanager
async def _figure(cluster):
    """Return what reads the gauge, each time an hour later, and its database."""
    hours = count()
    database = Database(
        login_url(cluster.url, "accounts"), "accounts", pool_size=1, deadline=PATIENCE_SECONDS
    )
    collectors = database_collectors(
        database, database, lambda: START + timedelta(hours=next(hours))
    )
    (transactions,) = [one for one in collectors if one.name == "transactions"]
    gauges = ScrapedGauges(CollectorRegistry())

    async def look():
        await transactions.collect(gauges)
        return gauges.figures()["oldest_transaction_seconds"][""]

    await database.open()
    try:
        yield look, database
    finally:
        await database.close()


def _slots_query():
    """Return the runbook's look at replication slots."""
    statements = runbook.block("sql", "select pid, usename, application_name").split(";")
    (query,) = [one for one in statements if "from pg_replication_slots" in one]
    return query


async def _numbered(world):
    """Wait until the live ledger has no waiting events."""
    sequencer = Sequencer(world.service.modes["live"].ledger)

    async def numbered():
        return not (await sequencer.lag()).waiting

    await eventually(numbered)
