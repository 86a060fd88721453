"""The service behind PgBouncer in transaction mode (decision 5).

Such a pooler cannot pass `role` on, so each ledger has a login role of its own that is a member of
the ledger's role, and migrations run on a direct connection. PgBouncer refuses start parameters
that it does not track, so such a role's `idle_in_transaction_session_timeout` is set by ALTER ROLE.

Statements are not prepared ahead (`statement_cache_size=0`): asyncpg then sends Parse again with
Bind, so any server connection will do. That works with every PgBouncer; 1.21 and later with
`max_prepared_statements` above 0 could keep prepared statements, earlier ones cannot.
"""

import asyncio
import os
import secrets
import shutil
import socket
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from service.ledger.sql import Sql
from tests.patience import PATIENCE_SECONDS, eventually, until
from tests.processes import started
from tests.world import settings_for, world_on

LIMITS = {
    "lock_timeout": "90s",
    "statement_timeout": "100s",
    "idle_in_transaction_session_timeout": "10s",
    "client_connection_check_interval": "1s",
}
LEDGERS = ("accounts", "live", "test")
PGBOUNCER = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")


@pytest.fixture
def login_roles(database_url):
    """Return a password, and for each ledger a login role that is a member of its role."""
    password, suffix = secrets.token_hex(8), secrets.token_hex(4)
    roles = {ledger: f"{ledger}_login_{suffix}" for ledger in LEDGERS}
    with psycopg.connect(database_url, autocommit=True) as owner:
        for ledger, role in roles.items():
            owner.execute(f"create role {role} login password '{password}'")
            owner.execute(f"grant claim_ledger_{ledger} to {role}")
            for limit, value in LIMITS.items():
                owner.execute(f"alter role {role} set {limit} = '{value}'")
        yield password, roles
        for role in roles.values():
            owner.execute(f"drop role {role}")


@pytest.fixture
def folder():
    """Return a directory readable by nobody's user: PgBouncer refuses to run as root."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def pooled(database_url, login_roles, folder):
    """Return each ledger's URL through a pooler with two server connections per role."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed (apt-get install pgbouncer)")
    password, roles = login_roles
    parts = urlsplit(database_url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    users = folder / "users.txt"
    users.write_text("".join(f'"{role}" "{password}"\n' for role in roles.values()))
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host={parts.hostname} port={parts.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = scram-sha-256\nauth_file = {users}\npool_mode = transaction\n"
        "default_pool_size = 2\n"
    )
    user = 65534 if os.geteuid() == 0 else None
    command = [PGBOUNCER, str(config)]
    with (
        (folder / "pgbouncer.log").open("wb") as log,
        started(command, stdout=log, stderr=log, user=user) as process,
    ):
        _wait_until_it_listens(port, process, folder / "pgbouncer.log")
        address = f"127.0.0.1:{port}{parts.path}"
        yield {
            f"{ledger.upper()}_DATABASE_URL": f"postgresql://{role}:{password}@{address}"
            for ledger, role in roles.items()
        }


async def test_the_service_works_behind_a_transaction_pooler(pooled, database_url, tmp_path):
    """Claims, replays, lists, approvals and numbering, concurrently on few connections."""
    settings = settings_for(database_url, tmp_path, **pooled)
    async with world_on(settings, tmp_path) as world:
        partner = await world.partner()
        entity_id = await partner.connected_entity()
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


def _wait_until_it_listens(port, process, log):
    def listens():
        assert process.poll() is None, log.read_text()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS).close()
            return True
        return False

    until(listens, log.read_text)


async def _all_numbered(world):
    database = world.service.modes["live"].ledger.database

    async def numbered():
        async with database.writes.connection() as connection:
            return not await connection.fetchval("select count(*) from live.pending")

    await eventually(numbered)
