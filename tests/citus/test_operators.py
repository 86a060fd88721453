"""What operators do to a ledger that has a node of its own, and what that node's loss costs."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.citus.cluster import HOMES, Citus, as_superuser, port, shard_of
from tests.citus.pooled import pooled, proxied
from tests.databases import login_url
from tests.dev_process import environment, run
from tests.faults.clusters import check_log, check_verified, settled
from tests.patience import eventually, until
from tests.world import (
    MASTER_KEY,
    PUBLIC_URL,
    STAFF,
    TEAM,
    Partner,
    World,
    deadline_of,
    settings_for,
    world_on,
)

pytestmark = pytest.mark.server

DEADLINE_SECONDS = 6
"""Of a write: what is refused during a move should be seen to be."""
CONNECTIONS = 8
REFUSED = {
    "update": "update {table} set {column} = {column}",
    "delete": "delete from {table}",
    "truncate": "truncate {table} cascade",
}
APPEND_ONLY = {"events": "topic", "log": "leaf_hash", "public_ids": "public_id"}


@contextmanager
def reached_directly(citus: Citus) -> Iterator[dict[str, str]]:
    """Yield the settings that name each ledger's nodes."""
    yield citus.urls


@pytest.fixture(params=[reached_directly, pooled])
async def world(
    request: pytest.FixtureRequest, citus: Citus, tmp_path: Path
) -> AsyncGenerator[World, None]:
    """Return a service whose partners' ledgers have nodes of their own."""
    mail_dir = tmp_path / "mail"
    with request.param(citus) as urls:
        async with world_on(settings_for(citus.url, mail_dir, **urls), mail_dir) as one:
            yield one


async def test_a_claim_goes_all_the_way(citus: Citus, world: World) -> None:
    """It is written, found, numbered and verified, by the node that has its ledger."""
    partner, entity_id = await world.connected()
    created = await partner.claim(entity_id)
    assert (created.status_code, (await partner.claim(entity_id)).status_code) == (201, 200)
    found = await partner.call("GET", f"/claims?entity_id={entity_id}")
    assert [one["claim_id"] for one in found.json()["claims"]] == [created.json()["claim_id"]]
    await settled(citus.url)
    for ledger in HOMES:
        check_log(citus.url, ledger)
    await check_verified(world.service)


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_the_ledger_is_append_only_on_every_node_and_on_its_shard(citus: Citus, table: str) -> None:
    """Whoever is on a node, a superuser included, is refused what the ledger's owner is.

    A node that other ledgers are entered by does not reach this one's tables at all.
    """
    home = citus.node_of("live")
    shard = shard_of(citus, f"live.{table}")
    for name, target in [*((name, f"live.{table}") for name in citus.nodes), (home, shard)]:
        refused = psycopg.errors.InsufficientPrivilege if name != "two" else psycopg.Error
        with as_superuser(citus.nodes[name]) as operator:
            operator.execute("set citus.enable_manual_changes_to_shards = on")
            for statement in REFUSED.values():
                with pytest.raises(refused):
                    operator.execute(statement.format(table=target, column=APPEND_ONLY[table]))


def test_only_a_ledgers_login_may_write(citus: Citus) -> None:
    """Functions have on every node the rights that `migrate` gave them."""
    query = (
        "select count(*) from pg_proc as p where proname in ('write', 'set_aside_events')"
        " and (has_function_privilege('public', p.oid, 'execute') or not has_function_privilege("
        "'claim_ledger_' || pronamespace::regnamespace::text, p.oid, 'execute'))"
    )
    for name, node in citus.nodes.items():
        assert (name, node.value(query, superuser=True)) == (name, 0)


async def test_a_move_under_traffic_loses_nothing(citus: Citus, world: World) -> None:
    """There and back: what was acknowledged is there, once, in order; the rest was a 503."""
    partner, entity_id = await world.connected()
    acknowledged: set[str] = set()
    answers: Counter[int] = Counter()
    others: Counter[int] = Counter()
    ended = asyncio.Event()

    async def write(client: int) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            answer = await partner.claim(entity_id, f"{client}-{number}")
            answers[answer.status_code] += 1
            if answer.status_code == HTTPStatus.CREATED:
                acknowledged.add(answer.json()["claim_id"])
            else:
                await asyncio.sleep(0.05)

    async def elsewhere() -> None:
        while not ended.is_set():
            answer = await partner.call("GET", "/claims?entity_id=ent_none", mode="test")
            others[answer.status_code] += 1
            await asyncio.sleep(0.1)

    with deadline_of(world, DEADLINE_SECONDS):
        async with asyncio.TaskGroup() as group:
            for client in range(4):
                group.create_task(write(client))
            group.create_task(elsewhere())
            for node in ("two", "one"):
                before = len(acknowledged)
                await asyncio.to_thread(citus.move, "live", node)
                assert citus.node_of("live") == node
                await eventually(lambda before=before: len(acknowledged) > before + 4)
            ended.set()
    assert set(answers) <= {HTTPStatus.CREATED, HTTPStatus.SERVICE_UNAVAILABLE}, answers
    assert set(others) == {HTTPStatus.NOT_FOUND}, others
    await settled(citus.url)
    check_log(citus.url, "live")
    with psycopg.connect(citus.url) as owner:
        rows = owner.execute("select claim_id from live.claim_list").fetchall()
    assert acknowledged <= {row[0] for row in rows}
    await check_verified(world.service)


async def test_read_models_are_rebuilt_and_rolled_back_and_a_claim_is_erased(
    citus: Citus, world: World, tmp_path: Path
) -> None:
    """By the commands of the team, which lead to the coordinator; claims go on being written."""
    partner, entity_id = await world.connected()
    created = [await partner.claim(entity_id, f"case-{number}") for number in range(3)]
    await world.service.staff.add(TEAM, STAFF)
    archive = tmp_path / "archive"
    archive.mkdir(mode=0o700)
    await settled(citus.url)

    async def done(*arguments: str) -> dict[str, Any]:
        given = {
            "DATABASE_URL": citus.url,
            "MASTER_KEYS": MASTER_KEY,
            "PUBLIC_URL": PUBLIC_URL,
            "STAFF": TEAM,
            "ARCHIVE_URL": archive.as_uri(),
            **citus.urls,
        }
        answer = await asyncio.to_thread(run, *arguments, "--json", env=environment(**given))
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return json.loads(answer.stdout)

    rebuilt = await done("projections", "rebuild", "--all")
    assert rebuilt["differences"] == []
    assert {one["swapped"] for one in rebuilt["rebuilt"]} == {True}
    await done("projections", "rollback", "claim_list", "--ledger", "live")
    claim_id = created[0].json()["claim_id"]
    erased = await done("privacy", "erase", "--claim", claim_id, "--reason", "asked", "--yes")
    assert erased["keys_destroyed"] == 1
    assert (await partner.claim(entity_id, "after")).status_code == HTTPStatus.CREATED
    await settled(citus.url)
    assert (await done("projections", "verify"))["differences"] == []
    await check_verified(world.service)


def test_a_proxy_that_has_begun_leads_to_no_other_node(citus: Citus) -> None:
    """Not even before its first checks have ended, when it takes every node for up."""
    homes = {ledger: port(citus.nodes[citus.node_of(ledger)]) for ledger in ("live", "test")}
    reached: dict[str, list[int]] = {ledger: [] for ledger in homes}

    def reached_often() -> bool:
        for ledger, address in servers.items():
            url = login_url(citus.url, ledger).replace(f"127.0.0.1:{own}", address)
            with suppress(psycopg.OperationalError), psycopg.connect(url) as one:
                reached[ledger].extend(one.execute("select inet_server_port()").fetchone() or ())
        return min(map(len, reached.values())) >= CONNECTIONS

    own = port(citus.nodes["coordinator"])
    with proxied(citus) as servers:
        until(reached_often)
    for ledger, home in homes.items():
        assert set(reached[ledger]) == {home}


async def test_what_the_service_did_not_write_is_set_aside(citus: Citus, world: World) -> None:
    """On a node of its own, too, where an event is in a shard; later ones are numbered."""
    partner, entity_id = await world.connected()
    await settled(citus.url)
    event_id = uuid4()
    with as_superuser(citus.nodes[citus.node_of("live")]) as operator:
        operator.execute(
            "with added as (insert into live.events (originator_id, originator_version, topic,"
            " state) values (%s, 1, 'ClaimCreated', '{}') returning append_id)"
            " insert into live.pending select append_id from added",
            [event_id],
        )
        assert (await partner.claim(entity_id)).status_code == HTTPStatus.CREATED
        await settled(citus.url)
        rows = operator.execute(
            "select reason from live.set_aside where originator_id = %s", [event_id]
        ).fetchall()
    assert rows == [("mac",)]


async def test_a_node_that_fails_is_one_ledgers_503(citus: Citus, world: World) -> None:
    """The other ledgers answer meanwhile, and this one goes on when its node is back."""
    partner: Partner = await world.partner()
    entity_id = await partner.connected_entity()
    server = citus.nodes[citus.node_of("live")].server
    server.shutdown_abruptly()
    try:
        with deadline_of(world, DEADLINE_SECONDS):
            assert (await partner.claim(entity_id)).status_code == HTTPStatus.SERVICE_UNAVAILABLE
            asked = await partner.call("GET", "/claims?entity_id=ent_none", mode="test")
            assert asked.status_code == HTTPStatus.NOT_FOUND
            added = await partner.call(
                "POST", "/connect-requests", mode="test", json={"partner_user_id": "u"}
            )
            assert added.status_code == HTTPStatus.CREATED
    finally:
        server.start()

    async def is_back() -> bool:
        return (await partner.claim(entity_id)).status_code == HTTPStatus.CREATED

    await eventually(is_back)
