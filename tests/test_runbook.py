"""The runbook names only what exists, and its SQL runs."""

import ast
import builtins
import re
import runpy
import ssl
import subprocess
from pathlib import Path

import asyncpg
import psycopg
import pytest

from service.app.bootstrap import Service
from service.facts.caller import LEDGERS
from service.ledger.database import NotMigrated, WrongLogin, is_infrastructure_error
from service.ledger.following.catch_up import CatchUpProjection
from service.ledger.following.status import AHEAD, HeadWatch, Progress, progress
from service.ledger.sequencer import Sequencer
from tests import runbook
from tests.calls import command_of, hold
from tests.certificates import certificate
from tests.dev_process import environment
from tests.patience import PATIENCE_SECONDS
from tests.redis_server import RedisServer
from tests.world import settings_for, world_on

TEXT = runbook.PATH.read_text()
ROLES = "create role claim_ledger_accounts"
LIMITS = "alter role claim_ledger_accounts"
WARNS = {f"log.{level}" for level in ("warning", "error", "exception", "critical")}
COMMANDS = sorted(
    {
        line
        for block in [*runbook.blocks("sh"), *runbook.blocks("bash")]
        for line in block.splitlines()
        if line.startswith("claim-ledger ")
    }
    | set(re.findall(r"`(claim-ledger [^`]+)`", TEXT.replace("\n", " ")))
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_exists(line):
    """Groups, commands, options, choices and argument counts match the CLI."""
    # A bare mention, such as "`claim-ledger privacy erase` destroys", is not a call.
    hold(line, bare=not command_of(line)[1])


def test_every_command_that_ends_takes_json():
    """As the runbook's introduction says, of those that the runbook has."""
    lacking: set[str] = set()
    for line in COMMANDS:
        command, _ = command_of(line)
        if not any("--json" in one.opts for one in command.params):
            lacking.add(line)
    assert lacking == {"claim-ledger serve", "claim-ledger worker"}


def test_the_runbook_has_commands():
    """The test above is not empty: it sees backup and lineage, for instance."""
    assert "claim-ledger privacy reapply" in COMMANDS
    assert any(line.startswith("claim-ledger audit lineage --reason") for line in COMMANDS)


@pytest.mark.parametrize(
    "block", [one for one in runbook.blocks("sql") if not one.startswith((ROLES, LIMITS))]
)
def test_every_block_of_sql_runs(module_database_url, block):
    """As the owner, on a migrated database; those about roles are tried on their own clusters."""
    with psycopg.connect(module_database_url, autocommit=True) as owner:
        for statement in block.replace("PID", "0").replace("POSITION", "0").split(";\n"):
            if statement.strip():
                owner.execute(statement.encode())
                assert owner.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize("section", ["Mail stuck", "Mail withheld"])
def test_both_outboxes_are_mended_alike(section):
    """What is done to a mail of live can be done to a notice of accounts; lists tell them apart."""
    text = TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    live, accounts = (
        re.findall(rf"{ledger}\.mail_outbox ((?:where|set) .*?);", text, re.DOTALL)
        for ledger in ("live", "accounts")
    )
    assert live
    assert live == accounts
    assert set(re.findall(r"select message_id, (\w+)", text)) <= {"version"}


def test_every_line_of_the_log_that_warns_is_there():
    """Whoever meets one finds what it means, and what to do."""
    text = " ".join(TEXT.split())
    modules = [*Path("service").rglob("*.py"), *Path("projections").rglob("*.py")]
    lines = {
        call.args[0].value
        for module in modules
        if "dev" not in module.parts
        for call in ast.walk(ast.parse(module.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in WARNS
        if isinstance(call.args[0], ast.Constant)
    }
    assert "follower waits" in lines
    assert {line for line in lines if f"`{line}`" not in text} == set()


async def test_a_subscriber_that_is_ahead_goes_on(database_url, tmp_path):
    """Even if the log has grown past it: it continues after the shared events."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        live = world.service.modes["live"].ledger
        for _ in range(3):
            await world.entity()
        await Sequencer(live).step()
        with psycopg.connect(database_url, autocommit=True) as owner:
            owner.execute(
                "insert into live.subscriptions (name, position, leaf_hash)"
                " values ('mail', 2, sha256('of an event that is lost'))"
            )
            before = await _mail(world.service)
            block = runbook.block("sql", "update live.subscriptions")
            owner.execute(block.replace("POSITION", "1").replace("NAME", "mail").encode())
        after = await _mail(world.service)
    assert (before.fault, before.position) == (AHEAD, 2)
    assert (after.fault, after.position, after.lag_events) == (None, 1, 2)


def test_every_subscriber_can_go_on_after_a_cut(tmp_path):
    """The section has what comes again of each that is no read model, and statements for each."""
    text = TEXT.partition("*Ahead of the log:*")[2].partition("*An event that cannot be read:*")[0]
    settings = settings_for("postgresql://nobody@127.0.0.1:1/none", tmp_path)
    service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
    others = {
        f"{ledger}.{subscriber.name}"
        for ledger, every in service.parking.items()
        for subscriber in every
        if not isinstance(subscriber, CatchUpProjection)
    }
    assert set(re.findall(r"`((?:accounts|live|test)\.\w+)`", text)) == others
    assert set(re.findall(r"update (\w+)\.subscriptions set position", text)) == set(LEDGERS)


PING, PING_OVER_TLS = re.findall(r"`(redis-cli -u [^`]+ ping)`", TEXT)


@pytest.mark.server
def test_a_redis_that_works_answers_the_ping(tmp_path):
    """With the URL that `prepare.py` makes, taken from its file as the page's beginning says."""
    made = runpy.run_path(str(runbook.PATH.parent / "compose/prepare.py"))["of_redis"]()
    (password,) = re.findall(r'^requirepass "(.*)"$', made["redis_configuration"], re.MULTILINE)
    redis = RedisServer(tmp_path)
    redis.start()
    redis.command("CONFIG", "SET", "requirepass", password)
    file = tmp_path / "redis_url"
    file.write_text(made["redis_url"].replace("redis:6379", f"127.0.0.1:{redis.port}") + "\n")
    ping = PING
    done = subprocess.run(
        ["bash", "-eu"],
        input=f"{runbook.block('bash', 'for name in CLAIM_LEDGER_DATABASE_URL')}{ping}\n",
        env=environment(REDIS_URL_FILE=str(file)),
        capture_output=True,
        text=True,
        check=True,
    )
    redis.stop()
    assert done.stdout == "PONG\n"


@pytest.mark.server
def test_a_redis_that_works_over_tls_answers_the_ping(tmp_path):
    """Which without the authority would be taken for one that is down."""
    redis, made = RedisServer(tmp_path), certificate(tmp_path, "127.0.0.1")
    redis.start(tls=made)
    given = environment(REDIS_URL=f"rediss://127.0.0.1:{redis.tls_port}/0?ssl_ca_certs={made}")
    commands = PING, PING_OVER_TLS.replace("FILE", str(made))
    said = [
        subprocess.run(["bash", "-c", one], env=given, capture_output=True, text=True, check=False)
        for one in commands
    ]
    redis.stop()
    assert [one.stdout for one in said] == ["", "PONG\n"]


def test_each_finding_about_keys_has_its_row():
    """Of each list that `keys-at-rest verify` has."""
    text = TEXT.partition("\n## Keys at rest\n")[2].partition("\n## ")[0]
    listed = re.findall(r"`(\w+_keys)`", text.partition("| finding |")[2])
    assert {"lost_keys", "unfit_keys", "faulty_keys"} <= set(listed)


async def _mail(service: Service) -> Progress:
    """Return the mail subscriber's status."""
    live = service.modes["live"].ledger
    head = await HeadWatch(live, service.clock).look()
    found = await progress(live, service.read_models, head, service.clock)
    return next(one for one in found if one.name == "mail")


def test_what_postgresql_refuses_has_its_line():
    """Each `error_type` in the table is what the adapter takes for an outage, as its log names it.

    Those that an operator meets while PostgreSQL is up are among them.
    """
    table = TEXT.partition("| `error_type` | PostgreSQL |")[2].partition("\n\n")[0]
    names = {name for line in table.splitlines() for name in re.findall(r"`(\w+Error)`", line)}
    known = vars(builtins) | vars(ssl) | vars(asyncpg)
    assert [one for one in names if not is_infrastructure_error(known[one]("x"))] == []
    assert names >= {"TooManyConnectionsError", "LockNotAvailableError", "InvalidPasswordError"}
    assert "ProtocolViolationError" in names, "of a pooler"
    assert all(f"`{one.__name__}`" in table for one in (WrongLogin, NotMigrated))


def test_links_resolve():
    """Every section is in the list at the top, and no link is dead."""
    links = set(re.findall(r"\]\(#([^)]+)\)", TEXT))
    assert links <= runbook.anchors()
    top = TEXT.partition("\n## ")[0]
    assert runbook.anchors() - {"runbook"} <= set(re.findall(r"\]\(#([^)]+)\)", top))
