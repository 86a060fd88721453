"""Which installation the team's commands work on, and the errors when there is none."""

import asyncio
import json
import re
import ssl
import subprocess
import sys
from pathlib import Path
from socket import gaierror
from uuid import uuid4

import asyncpg
import click
import psycopg
import pytest
from asyncpg import ProtocolViolationError

from service.cli import cli
from service.cli.dev.postgres.directory import lock
from service.cli.outage import why
from service.ledger.database import LedgerUnavailable
from tests import runbook
from tests.certificates import certificate
from tests.dev_process import environment, run
from tests.world import MASTER_KEY, PUBLIC_URL, TEAM


@pytest.fixture
def installed(database_url) -> dict[str, str]:
    """Return the environment of an installation on a database for this test, with one of a team."""
    env = environment(
        DATABASE_URL=database_url, MASTER_KEYS=MASTER_KEY, PUBLIC_URL=PUBLIC_URL, STAFF=TEAM
    )
    assert run("staff", "add", TEAM, env=env).returncode == 0
    return env


def test_commands_work_on_the_environment(installed):
    """Without a dev the environment selects the installation, from the first command on."""
    added = run("partners", "add", "P", "--email", "p@example.com", "--json", env=installed)
    listed = run("partners", "list", "--json", env=installed)
    assert [one["name"] for one in json.loads(listed.stdout)["partners"]] == ["P"]
    assert json.loads(added.stdout)["status"] == "pending"


def test_no_installation_is_one_line(tmp_path):
    """With neither, one line says what to give, and names a dev that runs here."""
    bare = run("partners", "list", cwd=tmp_path)
    (tmp_path / ".claim-ledger").mkdir()
    (tmp_path / ".claim-ledger" / "dev.json").write_text("{}")
    nearby = run("partners", "list", cwd=tmp_path)
    assert (bare.returncode, bare.stdout, bare.stderr.count("\n")) == (1, "", 1)
    assert "--data-dir DIRECTORY" in bare.stderr
    assert "--data-dir .claim-ledger, which runs here" in nearby.stderr


def test_no_installation_names_what_the_command_requires():
    """An auditor has neither a master key nor the origin, and needs none."""
    urls = " ".join(f"CLAIM_LEDGER_{name}_DATABASE_URL," for name in ("ACCOUNTS", "LIVE"))
    team, auditor = (run(*words).stderr for words in (("partners", "list"), ("audit", "verify")))
    assert team.endswith(
        f" or set {urls} CLAIM_LEDGER_TEST_DATABASE_URL, CLAIM_LEDGER_MASTER_KEYS and "
        "CLAIM_LEDGER_PUBLIC_URL\n"
    )
    assert auditor.endswith(f" or set {urls[:-1]} and CLAIM_LEDGER_TEST_DATABASE_URL\n")


def test_a_dev_that_does_not_run_is_one_line(tmp_path):
    """A directory without a dev.json, or with a broken one, is named."""
    without = run("partners", "list", "--data-dir", tmp_path)
    (tmp_path / "dev.json").write_text("{")
    broken = run("partners", "list", "--data-dir", tmp_path, "--json")
    assert without.stderr == (
        f"Error: no `claim-ledger dev` is running on {tmp_path}: it has no dev.json\n"
    )
    assert json.loads(broken.stdout)["code"] == "validation_failed"
    assert broken.returncode == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda url: re.sub(r":\d+/", ":1/", url),
            "PostgreSQL at 127.0.0.1:1/",
        ),
        (
            lambda url: url.replace("://claim_ledger:", "://claim_ledger:x"),
            "refuses the password of CLAIM_LEDGER_ACCOUNTS_DATABASE_URL: is it",
        ),
        (lambda url: url + "x", "no such database"),
        (lambda url: url.rpartition("/")[0] + "/postgres", "claim-ledger migrate"),
    ],
    ids=["away", "password", "database", "schema"],
)
def test_an_unusable_database_gets_an_envelope(database_url, change, said):
    """The envelope says what is wrong with the database without the password."""
    url = change(database_url)
    password = url.split(":")[2].partition("@")[0]
    env = environment(DATABASE_URL=url, MASTER_KEYS=MASTER_KEY, PUBLIC_URL=PUBLIC_URL, STAFF=TEAM)
    done = run("partners", "list", "--json", env=env)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["code"]) == (1, "service_unavailable")
    assert said in answer["message"]
    assert password not in done.stdout + done.stderr


def test_a_login_that_postgresql_does_not_admit_is_named(installed, postgres_url):
    """By the setting with its URL, though PostgreSQL calls it a role; and what makes logins."""
    name = f"guest_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"create role {name} nologin password 'canary'")
        host = postgres_url.partition("@")[2]
        url = {"CLAIM_LEDGER_ACCOUNTS_DATABASE_URL": f"postgresql://{name}:canary@{host}"}
        done = run("partners", "list", env=installed | url)
        connection.execute(f"drop role {name}")
    assert done.returncode == 1
    assert "refuses the user of CLAIM_LEDGER_ACCOUNTS_DATABASE_URL: `claim-ledger" in done.stderr
    assert "canary" not in done.stderr


def test_the_owner_s_database_is_named_beside_the_ledgers(installed):
    """A rebuild goes there, around a pooler; which of the two does not answer, nothing says."""
    url = {"CLAIM_LEDGER_DATABASE_URL": "postgresql://owner:canary@127.0.0.1:1/d"}
    done = run("projections", "rebuild", "claim_list", env=installed | url)
    assert done.returncode == 1
    assert " or 127.0.0.1:1/d does not answer" in done.stderr
    assert "canary" not in done.stderr


def test_no_command_works_as_the_owner(installed, database_url):
    """The envelope says what the login may do that it should not."""
    owner = installed | {"CLAIM_LEDGER_ACCOUNTS_DATABASE_URL": database_url}
    done = run("partners", "list", "--json", env=owner)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["code"]) == (1, "service_unavailable")
    assert "the login claim_ledger may create roles" in answer["message"]


def test_faulty_settings_are_named_at_once(installed):
    """Every faulty variable is named, and no secret is shown."""
    secret = "c2VjcmV0"
    broken = installed | {
        "CLAIM_LEDGER_MASTER_KEYS": secret,
        "CLAIM_LEDGER_PUBLIC_URL": "nowhere",
        "CLAIM_LEDGER_PORTS": "1",
    }
    done = run("partners", "list", env=broken)
    faults = ("CLAIM_LEDGER_MASTER_KEYS", "CLAIM_LEDGER_PUBLIC_URL", "CLAIM_LEDGER_PORTS")
    assert done.returncode == 1
    assert [name for name in faults if f"{name}: " not in done.stderr] == []
    assert secret not in done.stderr


def test_unknown_master_keys_are_refused(installed):
    """Keys that have wrapped nothing here are reported in one line."""
    run("entities", "add", "E", "--email", "e@example.com", env=installed)
    other = installed | {"CLAIM_LEDGER_MASTER_KEYS": "B" * 43 + "="}
    done = run("entities", "add", "F", "--email", "f@example.com", env=other)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: CLAIM_LEDGER_MASTER_KEYS: ")


def test_a_starting_dev_is_not_yet_a_target(tmp_path):
    """While a dev starts there is no dev.json, and commands say that no dev is running."""
    with lock(tmp_path):
        done = run("partners", "list", "--data-dir", tmp_path)
    assert "is running" in done.stderr


SLOW = (
    {"litestar", "redis", "granian", "alembic", "sqlalchemy", "prometheus_client"}
    | {"jinja2", "eventsourcing"}
    | {"google.auth", "google.cloud.storage"}
)
"""What makes the service slow to start."""


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh process has imported after running the code."""
    told = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_a_command_does_without_the_web_framework():
    """The team's commands do not load what makes the service slow to start."""
    ours = [
        (group_name, name)
        for group_name, group in cli.commands.items()
        if isinstance(group, click.Group) and group_name != "storage"  # Google's client
        for name in group.list_commands(click.Context(group))
        if name != "replay"  # the independent one
    ]
    code = (
        "import click, service.cli\n"
        f"for group_name, name in {ours}:\n"
        "    group = service.cli.cli.commands[group_name]\n"
        "    assert group.get_command(click.Context(group), name)"
    )
    loaded = loaded_by(code)
    assert {"service.cli.projections.rebuild", "service.cli.audit.verify"} <= loaded
    assert loaded & SLOW == set()


def test_help_imports_no_command():
    """`--help` lists every command without importing one, or the database driver."""
    loaded = loaded_by("from service.cli import cli\ncli.main(['--help'], standalone_mode=False)\n")
    assert loaded & (SLOW | {"asyncpg", "psycopg", "service.app.bootstrap"}) == set()


def test_summaries_are_those_of_the_commands():
    """The summaries that `--help` shows without importing equal the commands' own."""
    context = click.Context(cli)
    lines = [" ".join(line.split()) for line in cli.get_help(context).splitlines()]
    for name in ("dev", "serve", "worker", "migrate"):
        command = cli.get_command(context, name)
        assert f"{name} {(command.help or '').partition('. ')[0].rstrip('.')}." in lines


async def test_a_deadline_is_named_and_not_the_cancel_that_it_ends_in():
    """The runbook's table has the one, and nobody would look for the other."""
    fault = LedgerUnavailable("TimeoutError")
    try:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    except TimeoutError as late:
        fault.__cause__ = late
    assert why(fault, None) == "PostgreSQL does not answer (TimeoutError)."


def test_a_pooler_that_was_not_named_is_recognised():
    """A command says which setting to make, as `serve` does when it starts."""
    said = ProtocolViolationError("unsupported startup parameter: lock_timeout")
    fault = LedgerUnavailable("ProtocolViolationError")
    fault.__cause__ = said
    assert why(fault, None) == (
        f"{said}: a transaction pooler? Then set CLAIM_LEDGER_TRANSACTION_POOLER=on."
    )


def test_a_certificate_that_has_expired_is_named(tmp_path):
    """PostgreSQL's or a pooler's: nothing else of ours says so, as a log has its `error_type`."""
    expired = certificate(tmp_path, "127.0.0.1", days=-1)
    fault = LedgerUnavailable("SSLCertVerificationError")
    fault.__cause__ = refused_handshake(expired)
    assert why(fault, None) == (
        "PostgreSQL does not answer (SSLCertVerificationError: certificate has expired)."
    )


def refused_handshake(path: Path) -> ssl.SSLError:
    """Return why a client that trusts a certificate does not take it from a server."""
    trusting = ssl.create_default_context(cafile=path)
    presenting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    presenting.load_cert_chain(path, path.with_suffix(".key"))
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there, server_hostname="127.0.0.1")
    server = presenting.wrap_bio(there, back, server_side=True)
    for end in (client, server):
        with pytest.raises(ssl.SSLWantReadError):
            end.do_handshake()
    with pytest.raises(ssl.SSLError) as caught:
        client.do_handshake()
    return caught.value


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong"), "[SSL: WRONG_VERSION_NUMBER] wrong"),
        (ConnectionError("the server rejected SSL upgrade"), "the server rejected SSL upgrade"),
    ],
)
def test_what_keeps_a_connection_away_is_said(cause, said):
    """As far as somebody has to correct it."""
    assert f" does not answer ({type(cause).__name__}: {said})." in why(cause, None)


def test_a_postgresql_that_answers_is_said_to_refuse():
    """The runbook's table has which errors are of one that is away, or late, and which are not."""
    rows = [(set(names) & vars(asyncpg).keys(), what) for names, what in runbook.outage_rows()]
    told = {name: why(vars(asyncpg)[name]("x"), None) for names, _ in rows for name in names}
    away = [names for names, what in rows if what.startswith(("is down", "does not answer"))]
    assert {one for one, line in told.items() if "does not answer" in line} == set().union(*away)
    assert told["TooManyConnectionsError"] == "PostgreSQL refuses (TooManyConnectionsError: x)."
    assert told["ReadOnlySQLTransactionError"].startswith("PostgreSQL refuses (")
