"""`claim-ledger migrate` and its messages when it fails."""

import asyncio
import json
import re
import struct
from asyncio.subprocess import PIPE
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

import migrations
from migrations import MigrationFailed, MigrationUnavailable, is_newest, newest_revision
from migrations import migrate as apply
from service.app.setting_values import database_place
from service.facts.caller import LEDGERS
from tests import runbook
from tests.database_proxy import DatabaseProxy
from tests.databases import login_url
from tests.dev_process import PROGRAM, environment, run
from tests.processes import free_port
from tests.world import MASTER_KEY

ENCRYPTED = {80877103, 80877104}
"""What a client that asks for encryption begins with."""
BEFORE = "0035"
"""The revision before one that changes tables: a new table waits for no lock."""
LOCK_ALL = """
do $$
declare place text;
begin
    for place in select format('%I.%I', schemaname, tablename) from pg_tables
    where schemaname in ('accounts', 'live', 'test') loop
        execute 'lock table ' || place;
    end loop;
end $$
"""


@pytest.fixture
def empty_url(postgres_url):
    """Return the owner's URL of an empty database for this test."""
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        yield postgres_url.rpartition("/")[0] + f"/{name}"
        connection.execute(f"drop database {name} with (force)")


def migrate(url: str, *options: str):
    """Run the command on a database."""
    return run("migrate", *options, env=environment(DATABASE_URL=url, MASTER_KEYS=MASTER_KEY))


def test_concurrent_migrations_succeed(empty_url):
    """Two migrations at once both succeed, and a third finds nothing to do."""
    before = is_newest(empty_url)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(migrate, [empty_url, empty_url]))
    again = migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        versions = connection.execute("select version_num from alembic_version").fetchall()
    assert [(one.returncode, one.stderr) for one in (*both, again)] == [(0, "")] * 3
    assert versions == [(newest_revision(),)]
    assert (before, is_newest(empty_url)) == (False, True)


def test_migrate_prints_json(empty_url):
    """The object names the revision, and the logins that were made."""
    done = run("migrate", "--json", env=environment(DATABASE_URL=empty_url, MASTER_KEYS=MASTER_KEY))
    logins = ["claim_ledger_accounts", "claim_ledger_live", "claim_ledger_test"]
    answer = {"revision": newest_revision(), "logins": logins}
    assert (done.returncode, json.loads(done.stdout)) == (0, answer)


def test_migrate_makes_the_logins_of_the_settings(empty_url):
    """With the passwords of their URLs, old or new; what lacks a URL is named."""
    given = {"DATABASE_URL": empty_url, "MASTER_KEYS": MASTER_KEY}
    changed = login_url(empty_url, "live").replace(
        "://claim_ledger_live:", "://claim_ledger_live:x"
    )
    try:
        done = run(
            "migrate", env=environment(**given, LIVE_DATABASE_URL=changed, TEST_DATABASE_URL="")
        )
        with psycopg.connect(changed) as session:
            who = session.execute(
                "select current_user, rolinherit, rolcreaterole from pg_roles"
                " where rolname = session_user"
            ).fetchone()
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(login_url(empty_url, "live"))
    finally:
        again = migrate(empty_url)
    psycopg.connect(login_url(empty_url, "live")).close()
    assert (done.returncode, done.stderr, again.returncode) == (0, "", 0)
    assert who == ("claim_ledger_live", False, False)
    assert "claim_ledger_live can log in." in done.stdout
    assert "needs CLAIM_LEDGER_TEST_DATABASE_URL: set" in done.stdout
    assert empty_url.split(":")[2].partition("@")[0] not in done.stdout


async def test_a_server_that_is_not_there_yet_is_waited_for(empty_url):
    """The first line says so, and what is wrong; one that is starting is not there yet, either."""
    parts, port = urlsplit(empty_url), free_port()
    given = environment(
        DATABASE_URL=empty_url.replace(f":{parts.port}/", f":{port}/"), MASTER_KEYS=MASTER_KEY
    )
    migrating = await asyncio.create_subprocess_exec(
        PROGRAM, "migrate", "--wait", "86400", "--json", env=given, stdout=PIPE, stderr=PIPE
    )
    assert migrating.stderr is not None
    told = (await migrating.stderr.readline()).decode()
    assert told.startswith(f"waiting for PostgreSQL at 127.0.0.1:{port}/")
    assert "Connection refused" in told
    refused = asyncio.Event()

    async def starts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer as a server does that is starting: no encryption, and an error by its code."""
        while True:
            size, code = struct.unpack("!II", await reader.readexactly(8))
            await reader.readexactly(size - 8)
            if code not in ENCRYPTED:
                break
            writer.write(b"N")
        fields = b"SFATAL\0C57P03\0Mthe database system is starting up\0\0"
        writer.write(b"E" + struct.pack("!I", len(fields) + 4) + fields)
        writer.close()
        refused.set()

    async with await asyncio.start_server(starts, "127.0.0.1", port):
        await refused.wait()
    server = await asyncio.start_server(
        DatabaseProxy(str(parts.hostname), parts.port or 0).serve, "127.0.0.1", port
    )
    async with server:
        printed, _ = await migrating.communicate()
    assert (migrating.returncode, json.loads(printed)["revision"]) == (0, newest_revision())


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        (lambda url: url.replace("://claim_ledger:", "://claim_ledger:x"), 86_400),
        (lambda url: url + "x", 86_400),
        (lambda url: url + "?sslmode=require", 86_400),
        (lambda url: re.sub(r":\d+/", ":1/", url), 1),
    ],
    ids=["password", "database", "encryption", "away"],
)
def test_nobody_waits_for_what_does_not_come(empty_url, change, seconds):
    """A server that is there and refuses is told of at once; one that is away, when time is up."""
    url = change(empty_url)
    done = migrate(url, "--wait", str(seconds))
    assert (done.returncode, done.stdout) == (1, "")
    *waited, last = done.stderr.splitlines()
    assert last.startswith(f"Refused: PostgreSQL at {database_place(url)}: ")
    assert len(waited) == (seconds == 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: re.sub(r":\d+/", ":1/", url), "port"),
        (lambda url: url.replace("://claim_ledger:", "://claim_ledger:x"), "password"),
        (lambda url: url + "x", "does not exist"),
    ],
    ids=["away", "password", "database"],
)
def test_an_unusable_database_is_reported_in_one_line(empty_url, change, said):
    """The line says which, but has no password; the exit code is 1."""
    url = change(empty_url)
    done = migrate(url)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"Refused: PostgreSQL at {database_place(url)}: ")
    assert said in done.stderr
    assert url.split(":")[2].partition("@")[0] not in done.stderr
    assert json.loads(migrate(url, "--json").stdout)["code"] == "service_unavailable"


def test_a_table_that_stays_locked_is_an_outage(database_url, monkeypatch):
    """Nothing is wrong with what was asked for: the same command succeeds later."""
    monkeypatch.setattr(migrations, "LOCKED_SECONDS_MAX", 0)
    with psycopg.connect(database_url) as somebody:
        somebody.execute("update public.alembic_version set version_num = %s", [BEFORE])
        somebody.commit()
        somebody.execute(LOCK_ALL)
        with pytest.raises(MigrationUnavailable, match="lock timeout"):
            apply(database_url)


def test_a_database_of_another_encoding_is_refused_in_one_line(postgres_url):
    """It names the encoding, and how to make a database that will do."""
    name = f"ascii_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"create database {name} encoding 'SQL_ASCII' locale 'C' template template0"
        )
        with pytest.raises(MigrationFailed, match="has the encoding SQL_ASCII and needs UTF8"):
            apply(postgres_url.rpartition("/")[0] + f"/{name}")
        connection.execute(f"drop database {name}")


def test_insufficient_rights_are_one_line(postgres_url, empty_url):
    """A user who may not create schemas is told so in one line."""
    name = f"guest_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"create role {name} login password 'guest'")
        host = empty_url.partition("@")[2]
        done = migrate(f"postgresql://{name}:guest@{host}")
        connection.execute(f"drop role {name}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "permission denied" in done.stderr
    assert done.stderr.startswith("Error: ")


OLD = "claim_ledger_service"
"""The one login of an installation of before, for all three ledgers."""
ROLES = [f"claim_ledger_{ledger}" for ledger in LEDGERS]


@contextmanager
def one_login(url: str):
    """Have the cluster as it was before ledgers had logins; yield the URL of the one there was."""
    password = url.split(":")[2].partition("@")[0]
    with psycopg.connect(url, autocommit=True) as owner:
        for role in ROLES:
            owner.execute(f"alter role {role} nologin password null")
        owner.execute(f"create role {OLD} login password 'old' in role {', '.join(ROLES)}")
        try:
            yield url.replace(f"://claim_ledger:{password}", f"://{OLD}:old")
        finally:
            owner.execute(f"alter role claim_ledger password '{password}'")
            for role in ROLES:
                owner.execute(f"alter role {role} connection limit -1")
            owner.execute(f"drop role if exists {OLD}")
            assert migrate(url).returncode == 0


def test_an_installation_of_one_login_is_changed_over(database_url):
    """By the runbook's commands, while a process of before works; then neither URL of it does."""
    changed = database_url.replace(database_url.split(":")[2].partition("@")[0], "another")
    alone = environment(
        DATABASE_URL=database_url, MASTER_KEYS=MASTER_KEY, PUBLIC_URL="http://127.0.0.1:8000"
    )
    del alone["CLAIM_LEDGER_DATABASE_URL"]
    with one_login(database_url) as old, psycopg.connect(old, autocommit=True) as running:
        before = run("staff", "add", "a@example.com", env=alone)
        assert migrate(database_url).returncode == 0
        with psycopg.connect(database_url, autocommit=True) as owner:
            limits = runbook.block("sql", "alter role claim_ledger_accounts")
            owner.execute(limits.replace("LIMIT", "50").encode())
            after = run("staff", "add", "a@example.com", env=alone)
            running.execute("select count(*) from live.events")
            owner.execute(runbook.block("", f"drop role {OLD}").replace("…", "another").encode())
        for url in (old, database_url):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(url)
        psycopg.connect(changed).close()
    assert before.returncode == 1
    assert "refuses the password" in before.stderr
    assert (after.returncode, after.stderr) == (0, "")
