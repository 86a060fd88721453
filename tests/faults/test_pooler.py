"""The service behind PgBouncer in transaction mode (decision 5).

Such a pooler cannot pass `role` on, so each ledger has a login role of its own that is a member of
the ledger's role, and migrations run on a direct connection. PgBouncer refuses start parameters
that it does not track, so such a role's `idle_in_transaction_session_timeout` is set by ALTER ROLE.

Statements are not prepared ahead (`statement_cache_size=0`): asyncpg then sends Parse again with
Bind, so any server connection will do. That works with every PgBouncer; 1.21 and later with
`max_prepared_statements` above 0 could keep prepared statements, earlier ones cannot.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import asyncpg
import pytest

from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import encode
from service.evidence.proofs.absence import check_absence
from service.evidence.proofs.streams import ClaimName, prove_absence
from service.evidence.report.known import is_named
from service.evidence.report.lines import ReportSubject
from service.facts.caller import LEDGERS
from service.ledger import connection as ledger_connection
from service.ledger.database import BACKGROUND_SIZE, Database, LedgerUnavailable
from service.ledger.login import login_fault
from service.ledger.sql import Sql
from tests.database_proxy import proxied
from tests.evidence.checkpointing import KEY, directory_at
from tests.faults.clusters import folder_for_all, impatient_writes
from tests.patience import PATIENCE_SECONDS, eventually
from tests.pgbouncer import Logins, logins, pooler
from tests.world import settings_for, world_on

IMPATIENCE_SECONDS = 0.3
IMPATIENT_POOLER_SECONDS = 5
ROUNDS = 8
POOL_SIZE = 2
PLACES = 2 * POOL_SIZE + BACKGROUND_SIZE
BACKENDS = (
    "select json_agg(backends) from (select count(*) as backends from pg_stat_activity"
    " where usename like '%login%' group by usename) as counted"
)
ROWS = "select n from generate_series(1, 3) as n"
COMMIT = Sql("commit", "", "select pg_logical_emit_message(true, 'claim-ledger', 'a commit')")


@pytest.fixture
def folder():
    """Return a directory readable by nobody's user: PgBouncer refuses to run as root."""
    with folder_for_all() as path:
        yield path


@pytest.fixture
def pooled(database_url, folder):
    """Return each ledger's URL through a pooler with two server connections per role."""
    with (
        logins(database_url) as made,
        pooler(database_url, made, folder, default_pool_size=2) as urls,
    ):
        yield urls


async def test_the_service_works_behind_a_transaction_pooler(pooled, database_url, tmp_path):
    """Claims, replays, lists, approvals and numbering, concurrently on few connections."""
    settings = settings_for(database_url, tmp_path, **pooled)
    async with world_on(settings, tmp_path) as world:
        partner, entity_id = await world.connected()
        answers = await asyncio.gather(
            *(partner.claim(entity_id, f"case-{number % 40}") for number in range(200))
        )
        assert Counter(answer.status_code for answer in answers) == {201: 40, 200: 160}
        query = {"entity_id": entity_id, "limit": 200}
        pages = await asyncio.gather(
            *(partner.call("GET", "/claims", params=query) for _ in range(50))
        )
        assert {len(page.json()["claims"]) for page in pages} == {40}
        await partner.disconnect(entity_id)
        assert (await partner.claim(entity_id, "late")).status_code == 403
        await partner.connect(entity_id)
        assert (await partner.claim(entity_id, "again")).status_code == 201
        await _all_numbered(world)


async def test_a_pooler_that_is_not_named_is_one_line(pooled):
    """It refuses the settings of a session; the line has the setting that says what it is."""
    url = pooled["LIVE_DATABASE_URL"]
    fault = await login_fault(Database(url, "live", pool_size=1, deadline=PATIENCE_SECONDS))
    assert fault is not None
    assert "CLAIM_LEDGER_TRANSACTION_POOLER=on" in fault


async def test_a_pooler_whose_server_is_away_is_no_reason_not_to_start(folder):
    """While no primary leads, it refuses everybody by the code of a setting that it refuses."""
    made = Logins(dict.fromkeys(LEDGERS, "somebody"), "of-a-test")
    async with _nobody_leads() as address:
        server = f"postgresql://{address}/nothing"
        with pooler(server, made, folder, query_wait_timeout=1) as urls:
            url = urls["LIVE_DATABASE_URL"]
            with pytest.raises(asyncpg.ProtocolViolationError):
                await asyncpg.connect(url, timeout=PATIENCE_SECONDS)
            database = Database(url, "live", pooled=True, pool_size=1, deadline=PATIENCE_SECONDS)
            assert await login_fault(database) is None


async def test_a_cursor_leaves_nothing_behind_a_pooler(database_url, folder, monkeypatch):
    """Another process names its statements alike, and may get the same server connection."""
    with (
        logins(database_url) as made,
        pooler(database_url, made, folder, default_pool_size=1) as urls,
    ):
        for _ in range(2):
            monkeypatch.setattr("asyncpg.connection._uid", 0)  # as in a process of its own
            database = Database(
                urls["LIVE_DATABASE_URL"],
                "live",
                pooled=True,
                pool_size=1,
                deadline=PATIENCE_SECONDS,
            )
            await database.open()
            async with database.background.transaction() as connection:
                rows = [row["n"] async for row in connection.cursor(ROWS, prefetch=2)]
            await database.close()
            assert rows == [1, 2, 3]


async def test_a_log_is_read_behind_a_pooler_with_one_place(database_url, folder, tmp_path):
    """What is compared beside its snapshot is compared before and after."""
    places = {"default_pool_size": 1, "query_wait_timeout": IMPATIENT_POOLER_SECONDS}
    with logins(database_url) as made, pooler(database_url, made, folder, **places) as urls:
        settings = settings_for(database_url, tmp_path, **urls)
        async with world_on(settings, tmp_path, follow=False) as world:
            ledger = world.service.modes["live"].ledger
            checkpoints = Checkpoints(ledger, [KEY], directory_at(tmp_path / "published"))
            signed = Signed(*(await checkpoints.make())[:2])
            name = ClaimName("live", 0, "ptn_1", "ent_1", "case-1")
            subject = ReportSubject("partner_id", "ptn_1")
            assert not await is_named(ledger, subject, signed.checkpoint)
            proof = await prove_absence(checkpoints, name, signed, lambda _count: None)
            assert check_absence(encode(proof), [KEY]).checkpoint == signed.checkpoint


async def test_the_limits_of_a_login_hold_behind_a_pooler(pooled, database_url, tmp_path):
    """Requests have those of their role; background work sets its own in each transaction."""
    settings = settings_for(database_url, tmp_path, **pooled)
    limits = Sql(
        "limits",
        "",
        "select current_setting('lock_timeout') as lock,"
        " current_setting('statement_timeout') as one",
    )
    async with world_on(settings, tmp_path, follow=False) as world:
        database = world.service.modes["live"].ledger.database
        found = [tuple((await pool.fetch(limits))[0]) for pool in database.pools.values()]
    request = ("90s", "100s")
    assert found == [request, request, ("10s", "2min")]


async def test_reads_go_on_behind_a_pooler_while_commits_wait_for_a_replica(
    clusters, folder, tmp_path, monkeypatch
):
    """With as many places as the process has connections. Nothing is cancelled."""
    monkeypatch.setattr(ledger_connection, "SILENT_SECONDS_MAX", IMPATIENCE_SECONDS)
    cluster = clusters.migrated("alone", max_connections="40")
    cluster.admit_superuser()
    async with proxied(cluster.url) as (proxy, url):
        with (
            logins(cluster.url) as made,
            pooler(url, made, folder, default_pool_size=PLACES) as urls,
        ):
            settings = settings_for(cluster.url, tmp_path, POOL_SIZE=str(POOL_SIZE), **urls)
            async with world_on(settings, tmp_path) as world:
                partner, entity_id = await world.connected()
                assert (await partner.claim(entity_id, "before")).status_code == 201
                await _all_numbered(world)
                cluster.wait_for_replica("nobody")
                with impatient_writes(world, IMPATIENCE_SECONDS):
                    for number in range(ROUNDS):
                        names = [f"case-{number}-{place}" for place in range(3)]
                        posts = asyncio.gather(*(partner.claim(entity_id, one) for one in names))
                        listed = await partner.call("GET", "/claims?entity_id=" + entity_id)
                        assert [answer.status_code for answer in await posts] == [503] * 3
                        assert (listed.status_code, len(listed.json()["claims"])) == (200, 1)
                        assert max(cluster.value(BACKENDS, superuser=True)) <= PLACES
                cluster.wait_for_replica("")
                answers = await asyncio.gather(*(partner.claim(entity_id, one) for one in names))
                assert {answer.status_code for answer in answers} <= {200, 201}
                await _all_numbered(world)
    assert proxy.cancels == 0


async def test_a_pooler_without_places_is_waited_for(clusters, folder, monkeypatch):
    """Where nobody can ask whether PostgreSQL works on a commit, its connection stays.

    Where one is closed, the pooler drops the backend, which goes on waiting, and opens another.
    """
    monkeypatch.setattr(ledger_connection, "SILENT_SECONDS_MAX", IMPATIENCE_SECONDS)
    is_at_work, looks = Database._is_at_work, []  # noqa: SLF001 - counts how often it is asked

    async def counted(database, server_pid):
        looks.append(await is_at_work(database, server_pid))
        return looks[-1]

    monkeypatch.setattr(Database, "_is_at_work", counted)
    cluster = clusters.migrated("alone", max_connections="40")
    cluster.admit_superuser()
    with (
        logins(cluster.url) as made,
        pooler(cluster.url, made, folder, default_pool_size=2) as urls,
    ):
        url = urls["LIVE_DATABASE_URL"]
        database = Database(url, "live", pooled=True, pool_size=2, deadline=IMPATIENCE_SECONDS)
        await database.open()
        cluster.wait_for_replica("nobody")
        while len(looks) < ROUNDS:
            with pytest.raises(LedgerUnavailable):
                await database.writes.fetch(COMMIT)
            assert max(cluster.value(BACKENDS, superuser=True)) <= 2
        assert set(looks) == {True}
        cluster.wait_for_replica("")
        await eventually(lambda: len(set(database.writes.connections)) == 1)  # all are idle
        database.writes.deadline_seconds = PATIENCE_SECONDS
        await database.writes.fetch(COMMIT)
        await database.close()


@asynccontextmanager
async def _nobody_leads():
    """Yield the address of a proxy that has no primary to lead to: it ends each connection."""

    async def end(_reader, writer):
        writer.close()

    async with await asyncio.start_server(end, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


async def _all_numbered(world):
    database = world.service.modes["live"].ledger.database

    async def numbered():
        async with database.writes.connection() as connection:
            return not await connection.fetchval("select count(*) from live.pending")

    await eventually(numbered)
