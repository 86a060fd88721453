"""What a request has given up goes on in PostgreSQL, in its own place: backends never pile up."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from service.ledger import connection as ledger_connection
from service.ledger.database import Database, LedgerUnavailable
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sql import Sql
from tests.database_proxy import proxied
from tests.databases import login_url, migrated
from tests.faults.clusters import impatient_writes
from tests.lock_waits import waiting_for_locks
from tests.patience import PATIENCE_SECONDS, eventually
from tests.projections.rebuilding import model, rebuild
from tests.world import deadline_of, settings_for, world_on

IMPATIENCE_SECONDS = 0.3
"""Of a caller: far less than the sessions' own limits here, which are as long as the patience."""
ROUNDS = 8
BACKENDS = (
    "select json_object_agg(pool, backends) from (select application_name as pool, count(*) as"
    " backends from pg_stat_activity where application_name like 'claim-ledger %'"
    " and datname = current_database() group by 1) as counted"
)
COMMITS_WAIT = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"
REBUILD_WAITS = f"{COMMITS_WAIT} and application_name = 'claim-ledger rebuild'"
WAIT_WITH_LOCKS = (
    "select count(*) from pg_stat_activity join pg_locks using (pid)"
    " where wait_event = 'SyncRep' and mode = 'AccessExclusiveLock'"
)
LOCKED = Sql("locked", "", "select from ledger.claim_list, ledger.events")
ONE = Sql("one", "", "select 1 as one")
_FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"
LAST_WORD = b"E" + (4 + len(_FIELDS)).to_bytes(4) + _FIELDS


def check_places(world, backends):
    """Check that no pool has more backends than places."""
    places = {
        f"claim-ledger {ledger.name} {name}": pool.size
        for ledger in world.service.ledgers
        for name, pool in ledger.database.pools.items()
    }
    assert {name: n for name, n in backends.items() if n > places[name]} == {}


@pytest.fixture
async def world(database_url, tmp_path):
    """Return a service with four places in each pool for requests, and no followers."""
    settings = settings_for(database_url, tmp_path, POOL_SIZE="4")
    async with world_on(settings, tmp_path, follow=False) as one:
        yield one


@pytest.mark.parametrize("table", ["live.claim_list", "live.events"])
async def test_requests_on_a_locked_table_add_no_backends(world, owner, table):
    """Whoever comes while others wait is refused; afterwards each claim is written once."""
    partner, entity_id = await world.connected()
    names = [f"case-{number}" for number in range(8)]
    live = world.service.modes["live"].ledger.database
    with owner.transaction():
        owner.execute(f"lock table {table} in access exclusive mode")
        with deadline_of(world, IMPATIENCE_SECONDS):
            for _ in range(ROUNDS):
                answers = await asyncio.gather(*(partner.claim(entity_id, name) for name in names))
                assert {answer.status_code for answer in answers} == {503}
                looks = [pool.fetch(LOCKED) for pool in (live.reads, live.writes) for _ in names]
                given_up = await asyncio.gather(*looks, return_exceptions=True)
                assert {type(one) for one in given_up} == {LedgerUnavailable}
                owner.execute(
                    "select pg_stat_clear_snapshot()"
                )  # a transaction keeps its first look
                check_places(world, owner.execute(BACKENDS).fetchone()[0])
    answers = await asyncio.gather(*(partner.claim(entity_id, name) for name in names))
    assert {answer.status_code for answer in answers} <= {200, 201}
    assert owner.execute("select count(*) from live.claim_list").fetchone() == (len(names),)
    await eventually(lambda: _all_are_idle(world))


async def test_a_wait_for_a_lock_ends_on_the_server(owner, database_url):
    """The session's own limit ends it, while the lock is still held and nobody asks any more."""
    async with _database(database_url, deadline=1.0) as database:
        with owner.transaction():
            owner.execute("lock table live.claim_list in access exclusive mode")
            with pytest.raises(LedgerUnavailable):
                await database.writes.fetch(LOCKED)
            await eventually(lambda: waiting_for_locks(owner) == 0)
        assert await eventually(lambda: _answers(database.writes))


@pytest.fixture
async def complaints():
    """Return what the loop has been told that nobody else was."""
    told = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: told.append(context["message"]))
    yield told
    loop.set_exception_handler(None)


async def test_a_commit_that_is_answered_while_its_caller_gives_up_is_over(
    database_url, complaints
):
    """Its connection serves again, and the driver finds no transaction left in it."""
    async with _database(database_url, deadline=PATIENCE_SECONDS) as database:
        with pytest.raises(asyncio.CancelledError):
            await _given_up(database, lambda connection: connection.execute("commit"))
        await eventually(lambda: database.writes.connections == (1, 1))
        assert await database.writes.fetch(ONE)
        assert database.writes.connections == (1, 1)
    assert complaints == []


async def test_a_session_that_ends_while_its_caller_gives_up_frees_its_place(
    database_url, complaints
):
    """The server's last word has come, and the end of the connection has not."""
    async with _database(database_url, deadline=PATIENCE_SECONDS) as database:
        for _ in range(2 * database.writes.size):
            with pytest.raises(asyncio.CancelledError):
                await _given_up(database, _ended_by_the_server)
        await eventually(lambda: database.writes.connections == (0, 0))
        assert await database.writes.fetch(ONE)
    assert complaints == []


async def test_every_session_has_the_limits_of_its_pool(database_url):
    """A lock's before a statement's, and a statement's before the deadline of a request."""
    limits = Sql(
        "limits",
        "",
        "select array_agg(setting::int order by name) as found from pg_settings where name in"
        " ('client_connection_check_interval', 'idle_in_transaction_session_timeout',"
        " 'lock_timeout', 'statement_timeout')",
    )
    deadline = PATIENCE_SECONDS
    async with _database(database_url, deadline=deadline) as database:
        found = [(await pool.fetch(limits))[0]["found"] for pool in database.pools.values()]
        with pytest.raises(LedgerUnavailable):
            await database.reads.fetch(Sql("three", "", "delete from ledger.pending"))
    request = [1000, 10_000, round(600 * deadline), round(800 * deadline)]
    background = round(1000 * max(deadline, BACKGROUND_SECONDS))
    assert found == [request, request, [1000, 10_000, 10_000, background]]


async def test_reads_go_on_while_commits_wait_for_a_replica(clusters, tmp_path, monkeypatch):
    """Claims are refused in time and written once; reads, keys and an operator get through."""
    # PostgreSQL is asked about the commits that wait, and says that it is at work on them.
    monkeypatch.setattr(ledger_connection, "SILENT_SECONDS_MAX", IMPATIENCE_SECONDS)
    cluster = clusters.migrated("alone", max_connections="30")
    cluster.admit_superuser()
    settings = settings_for(cluster.url, tmp_path, POOL_SIZE="2")
    async with world_on(settings, tmp_path) as world:
        partner, entity_id = await world.connected()
        assert (await partner.claim(entity_id, "before")).status_code == 201
        cluster.wait_for_replica("nobody")
        with impatient_writes(world, IMPATIENCE_SECONDS):
            for number in range(ROUNDS):
                names = [f"case-{number}-{place}" for place in range(3)]
                posts = asyncio.gather(*(partner.claim(entity_id, name) for name in names))
                listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
                assert [answer.status_code for answer in await posts] == [503] * 3
                assert (listed.status_code, len(listed.json()["claims"])) == (200, 1)
                check_places(world, cluster.value(BACKENDS))
            assert (await world.client.get("/health/ready")).status_code == 200
        cluster.wait_for_replica("")
        names = [f"case-{number}-{place}" for number in range(ROUNDS) for place in range(3)]
        answers = await asyncio.gather(*(partner.claim(entity_id, name) for name in names))
        assert {answer.status_code for answer in answers} <= {200, 201}
        count = "select count(*) from live.claim_list"
        assert cluster.value(count) == len(names) + 1


async def test_a_rebuild_holds_no_table_while_commits_wait_for_a_replica(clusters, tmp_path):
    """Its swap waits for the replica before it locks anything: keys are read meanwhile."""
    cluster = clusters.migrated("alone")
    cluster.admit_superuser()
    async with world_on(settings_for(cluster.url, tmp_path), tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
        cluster.wait_for_replica("nobody")
        rebuilding = asyncio.create_task(rebuild(cluster.url, model(world, "partners", "accounts")))
        await eventually(lambda: cluster.value(REBUILD_WAITS, superuser=True))
        listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
        assert (listed.status_code, rebuilding.done()) == (200, False)
        cluster.wait_for_replica("")
        assert (await rebuilding).swapped is not None


async def test_a_migration_holds_no_table_while_commits_wait_for_a_replica(clusters):
    """It waits for the replica before its first change, unless it has nothing to change."""
    cluster = clusters.new("alone")
    cluster.admit_superuser()
    cluster.wait_for_replica("nobody")
    migrating = asyncio.create_task(asyncio.to_thread(migrated, cluster.url))
    try:
        await eventually(lambda: cluster.value(COMMITS_WAIT, superuser=True))
        assert cluster.value(WAIT_WITH_LOCKS, superuser=True) == 0
    finally:
        cluster.wait_for_replica("")  # or the thread would never end
    await migrating
    cluster.wait_for_replica("nobody")
    migrated(cluster.url)


async def test_a_silent_server_keeps_no_place(faulty, tmp_path, monkeypatch):
    """A server that answers nobody has its connections closed, and new ones work."""
    monkeypatch.setattr(ledger_connection, "SILENT_SECONDS_MAX", IMPATIENCE_SECONDS)
    settings = settings_for(faulty.server.url, tmp_path)
    async with world_on(settings, tmp_path, follow=False) as world:
        database = world.service.modes["live"].ledger.database
        await database.reads.fetch(ONE)
        faulty.freeze()
        try:
            with deadline_of(world, IMPATIENCE_SECONDS):
                for _ in range(2 * database.reads.size):
                    with pytest.raises(LedgerUnavailable):
                        await database.reads.fetch(ONE)
                await eventually(lambda: database.reads.connections == (0, 0))
        finally:
            faulty.thaw()
        assert await database.reads.fetch(ONE)
        assert database.reads.connections[0] <= database.reads.size


async def test_a_lost_answer_keeps_no_place(database_url, monkeypatch):
    """A statement is answered, and the answer never comes: its backend is idle, and let go."""
    monkeypatch.setattr(ledger_connection, "SILENT_SECONDS_MAX", IMPATIENCE_SECONDS)
    async with (
        proxied(database_url) as (proxy, url),
        _database(url, deadline=PATIENCE_SECONDS) as database,
    ):
        reads = database.reads
        await reads.fetch(ONE)
        patient, reads.deadline_seconds = reads.deadline_seconds, IMPATIENCE_SECONDS
        proxy.lost_answers = 1
        with pytest.raises(LedgerUnavailable):
            await reads.fetch(ONE)
        reads.deadline_seconds = patient
        await eventually(lambda: len(set(reads.connections)) == 1)  # all are idle
        assert await asyncio.gather(*(reads.fetch(ONE) for _ in range(2 * reads.size)))


async def test_a_mail_server_that_hangs_keeps_no_request_waiting(
    database_url, tmp_path, monkeypatch
):
    """With one connection for requests, lists are read while a mail is being sent."""
    monkeypatch.setattr("service.mail.smtp.DEADLINE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr("service.mail.outbox.SEND_SECONDS_MAX", PATIENCE_SECONDS)
    calls, over = [], asyncio.Event()

    async def hang(reader, writer):
        calls.append(reader)
        await over.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = settings_for(
        database_url, tmp_path, POOL_SIZE="1", SMTP_URL=f"smtp://127.0.0.1:{port}"
    )
    async with server, world_on(settings, tmp_path) as world:
        partner, entity_id = await world.connected()
        body = {"partner_user_id": "u", "company_name": "New", "user_email": "n@example.com"}
        assert (await partner.call("POST", "/onboardings", json=body)).status_code == 201
        await eventually(lambda: calls)
        listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
        claimed = await partner.claim(entity_id)
        assert (listed.status_code, claimed.status_code) == (200, 201)
        assert not any(call.at_eof() for call in calls)  # none has been given up meanwhile
        over.set()


async def test_a_migration_under_traffic_is_not_noticed(world, owner):
    """Columns that are added, and a statement whose result has changed within a transaction."""
    partner, entity_id = await world.connected()
    for table in ("claim_list", "connect_links", "onboardings", "connections"):
        calls = [partner.claim(entity_id, f"{table}-{number}") for number in range(8)]
        traffic = asyncio.gather(*calls, partner.connected_entity())
        await asyncio.to_thread(owner.execute, f"alter table live.{table} add column more text")
        *answers, _ = await traffic
        assert {answer.status_code for answer in answers} == {201}
        await partner.connected_entity()
    ledger, tries = world.service.modes["live"].ledger, 0

    async def attempt(transaction):
        nonlocal tries
        tries += 1
        await transaction.connection.fetch("select * from live.onboardings limit 0")

    pool = ledger.database.writes
    async with AsyncExitStack() as held:  # each on a connection of its own
        for _ in range(pool.size):
            await attempt(await held.enter_async_context(ledger.transaction()))
    owner.execute("alter table live.onboardings add column again text")
    async with AsyncExitStack() as held:
        for _ in range(pool.size):
            await ledger.decide(attempt)
            await held.enter_async_context(pool.connection())  # the one that was used last
    assert tries == 2 * pool.size + 1, "one refusal has all connections prepare it again"


@asynccontextmanager
async def _database(url, deadline):
    database = Database(login_url(url, "live"), "live", pool_size=2, deadline=deadline)
    await database.open()
    yield database
    await database.close()


async def _given_up(database, act):
    async with database.writes.transaction() as connection:
        await act(connection)
        raise asyncio.CancelledError


async def _ended_by_the_server(connection):
    connection._protocol.data_received(LAST_WORD)  # noqa: SLF001 - what the socket feeds


async def _answers(pool):
    try:
        return await pool.fetch(ONE)
    except LedgerUnavailable:  # a busy machine took longer than this deadline
        return None


def _all_are_idle(world):
    pools = [pool for one in world.service.ledgers for pool in one.database.pools.values()]
    return all(size == idle for size, idle in (pool.connections for pool in pools))
