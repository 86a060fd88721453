"""The database itself refuses to change the log, whoever asks."""

from itertools import product

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from service.facts.caller import LEDGERS
from tests.ledger.samples import CAUSE

TABLES = ("events", "log", "public_ids")
BESIDE = ("checkpoints", "checkpoint_signatures", "set_aside")
KEYS = {"events": "topic", "log": "position", "public_ids": "public_id"} | {
    "checkpoints": "size",
    "checkpoint_signatures": "size",
    "set_aside": "reason",
}
COUNT = "select count(*) from accounts.{}"
CHANGES = {
    "update": "update {table} set {key} = {key}",
    "update of no row": "update {table} set {key} = {key} where false",
    "delete": "delete from {table}",
    "truncate": "truncate {table} cascade",
    "merge update": (
        "merge into {table} as t using (select 1) as s on true"
        " when matched then update set {key} = t.{key}"
    ),
    "merge delete": (
        "merge into {table} as t using (select 1) as s on true when matched then delete"
    ),
}


@pytest.fixture
async def filled(service):
    """Leave a row in each of the tables of the ledger of accounts."""
    await service.partners.add("Partner", "p@example.com", CAUSE)


def test_the_owner_cannot_change_the_log(module_owner):
    """UPDATE, DELETE, TRUNCATE and MERGE are refused, also where they would match no row."""
    for ledger, table in product(LEDGERS, (*TABLES, *BESIDE)):
        refuse_every_change(module_owner, ledger, table)


def test_setting_events_aside_allows_no_other_change(module_owner):
    """Where its setting is on, an event that was kept aside is deleted; the rest stays refused."""
    module_owner.execute("set claim_ledger.sets_aside = 'on'")
    others = {name: change for name, change in CHANGES.items() if "delete" not in name}
    for table in (*TABLES, *BESIDE):
        refuse_every_change(module_owner, "live", table, others if table == "events" else CHANGES)


def test_replication_does_not_switch_the_refusal_off(replica_owner):
    """With session_replication_role at replica, ordinary triggers are silent; these are not."""
    assert replica_owner.execute("show session_replication_role").fetchone() == ("replica",)
    for table in (*TABLES, *BESIDE):
        refuse_every_change(replica_owner, "live", table)


@pytest.mark.usefixtures("filled")
def test_the_application_cannot_change_the_log(owner):
    """The application's own role is refused too, and the rows are still there."""
    owner.execute("set role claim_ledger_accounts")
    for change, table in product(CHANGES.values(), ("events", "public_ids")):
        with pytest.raises(InsufficientPrivilege):
            owner.execute(change.format(table=f"accounts.{table}", key=KEYS[table]))
    counts = [owner.execute(COUNT.format(t)).fetchone() for t in TABLES]
    assert counts == [(1,), (0,), (1,)]


def test_an_upsert_that_would_update_is_refused(module_owner):
    """ON CONFLICT DO UPDATE is an update."""
    with pytest.raises(InsufficientPrivilege, match="append-only"):
        module_owner.execute(
            "insert into live.public_ids values ('x') on conflict (public_id)"
            " do update set public_id = 'y'"
        )


def test_a_role_reaches_its_own_ledger_alone(module_owner):
    """A ledger's role reads nothing of another ledger, and nothing of its keys."""
    tables = (*TABLES, "pending", "head", "data_keys", "stored_events")
    for own, other, table in product(LEDGERS, LEDGERS, tables):
        module_owner.execute(f"set role claim_ledger_{own}")
        query = f"select count(*) from {other}.{table}"  # noqa: S608 - names of ours
        if own == other:
            assert module_owner.execute(query).rowcount == 1
        else:
            with pytest.raises(InsufficientPrivilege):
                module_owner.execute(query)


def refuse_every_change(owner, ledger, table, changes=CHANGES):
    """Try each change as the owner; the table's own trigger refuses it."""
    for change in changes.values():
        with pytest.raises(InsufficientPrivilege, match="append-only"):
            owner.execute(change.format(table=f"{ledger}.{table}", key=KEYS[table]))


@pytest.fixture(scope="module")
def replica_owner(migrated_clusters, tmp_path_factory):
    """Return a connection of the owner to a server whose every session acts as a replica's.

    The parameter is a superuser's to set, and nobody can sign in as one: the server starts with it.
    """
    with (
        migrated_clusters.server(
            tmp_path_factory.mktemp("replica"),
            settings={"session_replication_role": "replica"},
            durable=False,
        ) as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
        yield connection
