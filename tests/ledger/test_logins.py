"""Each ledger's login reaches its ledger, and nobody who works under it gets any further."""

import asyncio
import re
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from migrations.logins import make_logins
from service.facts.caller import LEDGERS
from service.ledger.database import Database, LedgerUnavailable, NotMigrated, WrongLogin
from service.ledger.login import login_fault
from service.ledger.sql import Sql
from tests.databases import cloned, login_url, migrated, on
from tests.patience import PATIENCE_SECONDS, until
from tests.tables import every_row

OWN = "select append_id from {own}.events limit 1"
FURTHER = {
    "become the owner": "set role claim_ledger",
    "become another ledger": "set role claim_ledger_{other}",
    "read another ledger": "select count(*) from {other}.events",
    "disable a trigger": "alter table {own}.events disable trigger append_only",
    "replace a trigger's function": (
        "create or replace function {own}.refuse_change() returns trigger language plpgsql"
        " as $$ begin return null; end $$"
    ),
    "drop a table": "drop table {own}.pending",
    "make a table": "create table {own}.other ()",
    "make a role": "create role mine",
    "take a role": "grant claim_ledger_{other} to claim_ledger_{own}",
    "raise itself": "alter role claim_ledger_{own} createrole",
    "make a schema": "create schema mine",
    "act as a replica": "set session_replication_role = replica",
    "run a program": "copy (select 1) to program 'true'",
}
ESCALATION = """
create function pg_temp.taken() returns name language plpgsql as $$
begin
    alter table live.events disable trigger append_only;
    return current_database();
end $$;
create temp view pg_stat_activity as
select pg_temp.taken() as datname, now() as xact_start, 'client backend' as backend_type, 0 as pid;
"""
"""What a session would have the owner run for it."""
GONE = "select not exists (select from pg_stat_activity where usename = %s)"
REMOVALS = """
select distinct table_name, privilege_type from information_schema.role_table_grants
where grantee like 'claim_ledger\\_%' and table_schema in ('accounts', 'live', 'test')
and privilege_type in ('DELETE', 'TRUNCATE') order by 1, 2
"""


@contextmanager
def login(owner, attributes, *statements):
    """Yield the name of a login with some attributes, which is its password, too."""
    name = f"other_{uuid4().hex}"
    owner.execute(f"create role {name} login password '{name}' {attributes}")
    for statement in statements:
        owner.execute(statement.format(name=name))
    yield name
    # A backend that outlives its role is nobody's: the database could not be dropped under it.
    until(lambda: owner.execute(GONE, [name]).fetchone()[0])
    owner.execute(f"revoke all on schema test from {name}")
    owner.execute(f"drop role {name}")


def as_login(url, name):
    """Return the URL of another login of the same database."""
    return f"postgresql://{name}:{name}@{url.rpartition('@')[2]}"


def test_a_login_gets_no_further_than_its_ledger(module_database_url):
    """Whoever can run statements as the service can read and append, and nothing else."""
    with every_row() as row:
        for own, other in zip(LEDGERS, (*LEDGERS[1:], LEDGERS[0]), strict=True):
            url = login_url(module_database_url, own)
            with psycopg.connect(url, autocommit=True) as session:
                session.execute(OWN.format(own=own))
                for what, statement in FURTHER.items():
                    with row(own, what), pytest.raises(InsufficientPrivilege):
                        session.execute(statement.format(own=own, other=other))


def test_the_owner_runs_nothing_for_a_login(module_database_url, module_owner):
    """A function that works as the owner calls no name that a session can take."""
    enabled = (
        "select tgenabled from pg_trigger"
        " where tgrelid = 'live.events'::regclass and tgname = 'append_only'"
    )
    with psycopg.connect(login_url(module_database_url, "live"), autocommit=True) as session:
        session.execute(ESCALATION)
        session.execute("select live.oldest_transaction_seconds()")
    assert module_owner.execute(enabled).fetchone() == ("A",)


async def test_the_service_refuses_any_other_login(module_database_url, module_owner):
    """The owner, one of several ledgers, one that may make roles: named with what it may do."""
    every = ", ".join(f"claim_ledger_{ledger}" for ledger in LEDGERS)
    mine, usage = "in role claim_ledger_live", "grant usage on schema test to {name}"
    other = module_owner
    with (
        login(other, f"in role {every}") as shared,
        login(other, f"{mine} createrole") as maker,
        login(other, f"{mine} createdb") as creator,
        login(other, mine, usage) as nosy,
        login(other, mine) as own,
    ):
        said = {
            module_database_url: "claim_ledger may create roles and may create databases and owns",
            as_login(module_database_url, shared): (
                "may become claim_ledger_accounts, claim_ledger_test"
            ),
            as_login(module_database_url, maker): "may create roles",
            as_login(module_database_url, creator): "may create databases",
            as_login(module_database_url, nosy): "may use the schema test",
            login_url(module_database_url, "test"): "may use the schema test",
            as_login(module_database_url, own): None,
            login_url(module_database_url, "live"): None,
            login_url(module_database_url, "live") + "x": "does not exist",
        }
        with every_row() as row:
            for url, fault in said.items():
                database = Database(url, "live", pool_size=1, deadline=PATIENCE_SECONDS)
                with row(fault):
                    found = await login_fault(database)
                    assert (found is None) == (fault is None)
                    assert fault is None or fault in (found or "")


async def test_nothing_is_done_under_a_wrong_login(module_database_url):
    """Also where the service was started before PostgreSQL: each piece of work is refused."""
    database = Database(module_database_url, "live", pool_size=1, deadline=PATIENCE_SECONDS)
    await database.open()
    for pool in database.pools.values():
        with pytest.raises(WrongLogin):
            await pool.fetch(Sql("one", "", "select 1"))
    await database.close()


async def test_what_was_not_migrated_is_unavailable(postgres_url, module_database_url):
    """Every request is refused with 503, and not with a fault of a statement, until it is."""
    with cloned(postgres_url, "template0") as empty:
        url = on(login_url(module_database_url, "live"), urlsplit(empty).path[1:])
        database = Database(url, "live", pool_size=1, deadline=PATIENCE_SECONDS)
        await database.open()
        with pytest.raises(NotMigrated, match="run `claim-ledger migrate`"):
            await database.reads.fetch(Sql("one", "", "select 1"))
        await asyncio.to_thread(migrated, empty)
        assert await database.reads.fetch(Sql("one", "", "select 1"))
        await database.close()


async def test_where_a_login_is_read_only_is_not_where_its_ledger_is(
    module_database_url, module_owner
):
    """A URL that asks for a server that takes writes finds none there, for reads either.

    Otherwise reads would stay on the node that a ledger has left. Their sessions cannot write.
    """
    name = module_database_url.rpartition("/")[2]
    url = login_url(module_database_url, "live") + "?target_session_attrs=read-write"
    role = f"alter role claim_ledger_live in database {name}"
    module_owner.execute(f"{role} set default_transaction_read_only = on")
    left = Database(url, "live", pool_size=1, deadline=PATIENCE_SECONDS)
    entered = Database(url, "live", pool_size=1, deadline=PATIENCE_SECONDS)
    for database in (left, entered):
        await database.open()
    asked = Sql("asked", "", "select current_setting('transaction_read_only')")
    for pool in left.pools.values():
        with pytest.raises(LedgerUnavailable, match="TargetServerAttributeNotMatched"):
            await pool.fetchrow(asked)
    module_owner.execute(f"{role} reset default_transaction_read_only")
    found = {name: await pool.fetchrow(asked) for name, pool in entered.pools.items()}
    assert {name: row and row[0] for name, row in found.items()} == {
        "reads": "on",
        "writes": "off",
        "background": "off",
    }
    for database in (left, entered):
        await database.close()


def test_a_login_that_somebody_else_administers_is_left(module_database_url, module_owner):
    """As long as it can log in; otherwise the missing right is named."""
    with (
        login(module_owner, "") as guest,
        login(module_owner, "", "alter role {name} nologin") as closed,
        psycopg.connect(as_login(module_database_url, guest)) as session,
    ):
        make_logins(session, {"claim_ledger_live": "another"})
        with pytest.raises(InsufficientPrivilege):
            make_logins(session, {closed: "another"})
    psycopg.connect(login_url(module_database_url, "live")).close()


def test_the_server_is_told_no_password(module_database_url, module_owner, tmp_path):
    """What is sent has a verifier of it, whatever the server logs; the login works with it."""
    password = "canary-of-a-password"
    with login(module_owner, "") as name, (tmp_path / "sent").open("w+b") as sent:
        module_owner.pgconn.trace(sent.fileno())
        make_logins(module_owner, {name: password})
        module_owner.pgconn.untrace()
        url = f"postgresql://{name}:{password}@{module_database_url.rpartition('@')[2]}"
        psycopg.connect(url).close()
        sent.seek(0)
        text = sent.read()
    assert b"SCRAM-SHA-256$" in text
    assert password.encode() not in text


def test_a_login_removes_only_what_the_service_removes(module_owner):
    """Each table that it may delete from has a statement that does; none may be emptied."""
    statements = "\n".join(path.read_text() for path in Path("service").rglob("*.sql"))
    removed = set(re.findall(r"delete from ledger\.(\w+)", statements))
    rights = module_owner.execute(REMOVALS).fetchall()
    assert [row for row in rights if row[1] == "TRUNCATE" or row[0] not in removed] == []
    assert {"hand_overs", "pending"} <= {row[0] for row in rights}


RENAMED = {
    "rename a finding": "update {own}.log_findings set kind = 'x' where kind = 'actors'",
    "rename a subscriber": "update {own}.subscriptions set name = 'x'",
    "rename a secret": "update accounts.service_keys set name = 'x'",
    "move a subscriber back": "update {own}.subscriptions set position = position - 1",
    "move it to the beginning": "update {own}.subscriptions set position = 0, leaf_hash = null",
    "forget the event that it came to": "update {own}.subscriptions set leaf_hash = null",
    "remove a subscriber": "delete from {own}.subscriptions",
}


def test_a_login_renames_nothing_and_moves_no_subscriber_back(module_database_url, module_owner):
    """Its effects would be had again, without a trace. It moves on, and the owner moves it."""
    move = "update {own}.subscriptions set position = {position}, leaf_hash = sha256('')"
    with every_row() as row:
        for own in LEDGERS:
            add = "insert into {own}.subscriptions (name, position) values ('mail', 7)"
            module_owner.execute(add.format(own=own))
            with psycopg.connect(login_url(module_database_url, own), autocommit=True) as session:
                session.execute(f"select from {own}.log_findings for update")
                session.execute(move.format(own=own, position=8))
                for what, statement in RENAMED.items():
                    if own == "accounts" or "accounts." not in statement:
                        with row(own, what), pytest.raises(InsufficientPrivilege):
                            session.execute(statement.format(own=own))
            module_owner.execute(move.format(own=own, position=0))
            module_owner.execute(f"delete from {own}.subscriptions")  # noqa: S608 - ours
