"""The limit of the service's login keeps places for operators, whatever the service does."""

import asyncio
from contextlib import ExitStack

import psycopg
import pytest
from structlog.testing import capture_logs

from service.facts.caller import LEDGERS
from service.ledger import connection_limit
from service.ledger.connection_limit import OTHERS_MIN, warn_of_limits
from service.ledger.database import BACKGROUND_SIZE
from tests.databases import login_url, migrated
from tests.faults.clusters import impatient_writes
from tests.patience import eventually
from tests.runbook import block
from tests.tables import every_row
from tests.world import settings_for, world_on

IMPATIENCE_SECONDS = 0.3
ROUNDS = 4
PLACES = 40
RESERVED = 3
LIMIT = (PLACES - RESERVED - OTHERS_MIN) // len(LEDGERS)
PROCESS = 2 * 1 + 4
"""Connections of a process with POOL_SIZE 1 to one ledger."""
LIMITS = "alter role claim_ledger_accounts connection limit"
BACKENDS = "select count(*) from pg_stat_activity where usename like 'claim_ledger@_%' escape '@'"


@pytest.fixture
def small(clusters):
    """Return a small server with the ledgers' logins, limited as the runbook has it."""
    cluster = clusters.migrated("small", max_connections=str(PLACES))
    cluster.admit_superuser()
    limit_to(cluster, LIMIT)
    return cluster


def limit_to(cluster, limit):
    """Limit each login by the runbook's statements."""
    cluster.execute(block("sql", LIMITS).replace("LIMIT", str(limit)))


def take_places(cluster, stack, ledger):
    """Connect until there is no place, as processes do that are killed and replaced."""
    while True:
        stack.enter_context(psycopg.connect(login_url(cluster.url, ledger)))


async def test_operators_find_a_place_while_commits_wait_for_a_replica(small, tmp_path):
    """Reads and authentication go on, and other processes cannot take the operators' places."""
    settings = settings_for(small.url, tmp_path, POOL_SIZE="1")
    async with world_on(settings, tmp_path, background_size=BACKGROUND_SIZE) as world:
        partner, entity_id = await world.connected()
        assert (await partner.claim(entity_id, "before")).status_code == 201
        small.wait_for_replica("nobody")
        list_path = "/claims?entity_id=" + entity_id
        with impatient_writes(world, IMPATIENCE_SECONDS), ExitStack() as others:
            for number in range(ROUNDS):
                claims = (partner.claim(entity_id, f"case-{number}-{one}") for one in range(3))
                posts = asyncio.gather(*claims)
                listed = await partner.call("GET", list_path)
                assert [answer.status_code for answer in await posts] == [503] * 3
                assert (listed.status_code, len(listed.json()["claims"])) == (200, 1)
                assert small.value(BACKENDS, superuser=True) <= len(LEDGERS) * PROCESS
            for ledger in LEDGERS:
                with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
                    take_places(small, others, ledger)
            assert small.value(BACKENDS, superuser=True) == len(LEDGERS) * LIMIT
            for _ in range(OTHERS_MIN):
                operator = others.enter_context(psycopg.connect(small.url, autocommit=True))
                assert operator.execute("select count(*) from live.claim_list").fetchone() == (1,)
            operator.close()
            migrated(small.url)
            assert (await partner.call("GET", list_path)).status_code == 200
        small.wait_for_replica("")
        answer = await eventually(lambda: _claimed(partner, entity_id))
        assert answer in {200, 201}


async def test_a_worker_warns_of_limits_that_leave_operators_no_place(small, tmp_path):
    """Or that leave a process none; a login that is limited as the runbook has it is well."""
    limits = {
        LIMIT: [],
        -1: ["a login of the service has no connection limit"],
        PROCESS - 1: ["a login's connection limit is less than one process may need"],
        LIMIT + 1: ["the connection limits leave too few places for operators"],
    }
    settings = settings_for(small.url, tmp_path, POOL_SIZE="1")
    size = BACKGROUND_SIZE
    async with world_on(settings, tmp_path, follow=False, background_size=size) as world:
        with every_row() as row:
            for limit, expected in limits.items():
                limit_to(small, limit)
                with row(str(limit)), capture_logs() as lines:
                    await warn_of_limits([ledger.database for ledger in world.service.ledgers])
                    assert [line["event"] for line in lines] == expected


async def test_a_worker_says_that_no_connection_is_left(small, tmp_path, monkeypatch):
    """Once, by the name that the runbook has of it; the limits are looked at when there is one."""
    monkeypatch.setattr(connection_limit, "RETRY_SECONDS", 0.01)
    settings = settings_for(small.url, tmp_path, POOL_SIZE="1")
    async with world_on(settings, tmp_path, follow=False) as world:
        limit_to(small, 0)
        with capture_logs() as lines:
            databases = [ledger.database for ledger in world.service.ledgers]
            looking = asyncio.create_task(warn_of_limits(databases))
            await eventually(lambda: lines)
            assert (await world.client.get("/health/ready")).status_code == 503
            await asyncio.sleep(0.1)  # it looks again, and repeats nothing
            limit_to(small, LIMIT)
            await looking
    told = [line for line in lines if line["event"] != "request"]
    assert [line["event"] for line in told] == [
        "a login of the service has no connection left",
        "ledger unavailable",
    ]
    assert told[1]["error_type"] == "TooManyConnectionsError"


async def _claimed(partner, entity_id):
    answer = await partner.claim(entity_id, "case-0-0")
    return answer.status_code in {200, 201} and answer.status_code
