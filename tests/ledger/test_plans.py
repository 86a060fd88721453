"""Plans do not depend on what the tables held when a session made them."""

import json
from uuid import uuid4

import pytest

from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.following.runner import Subscription
from service.ledger.rebuild.build import PAGE_POSITIONS
from service.ledger.rebuild.connecting import connected
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from tests.plans import nodes_of

CUSTOM = """
select statement from pg_prepared_statements
where custom_plans > 0 and statement not like '%pg_prepared_statements%'
"""
"""Statements of the session that were planned for the values that they were given."""

SQL = queries("service.ledger")
FOLLOWING = {
    queries("service.ledger.following").subscription_events: (0, 100, ["ClaimCreated"], None, 1000),
    SQL.data_keys: ([],),
}
"""What followers read each time, with arguments."""


@pytest.mark.parametrize("kind", ["reads", "writes", "background"])
async def test_a_new_installation_is_read_by_index(world, kind):
    """Its tables are empty when the first statements are planned, and grow for minutes."""
    pool = world.service.modes["live"].ledger.database.pools[kind]
    async with pool.connection() as connection:
        for sql, args in FOLLOWING.items():
            plan = await connection.fetch(f"explain {sql.on('live')}", *args)
            assert "Seq Scan" not in "\n".join(line for (line,) in plan)


@pytest.mark.parametrize("kind", ["reads", "writes", "background"])
async def test_a_plan_that_no_index_serves_is_not_compiled(world, kind):
    """Without whole scans it counts as the costliest of all, and PostgreSQL 15 would compile it."""
    pool = world.service.modes["live"].ledger.database.pools[kind]
    async with pool.connection() as connection:
        plan = await connection.fetch("explain select from live.events where state = ''")
    shown = [line for (line,) in plan]
    assert any("Seq Scan" in line for line in shown)
    assert "JIT:" not in shown


async def test_hashes_are_made_in_the_statement_that_asks_for_them(world):
    """A function that is called for each event has an executor of its own each time."""
    background = world.service.modes["live"].ledger.database.background
    numbering = SQL.sequencer_number.on("live")
    async with background.connection() as connection:
        plan = await connection.fetch(
            f"explain (verbose) {numbering}", 0, 100, 1000, uuid4(), "EventsBound", 0
        )
    shown = "\n".join(line for (line,) in plan)
    made = ("claim-ledger event v1", "claim-ledger event mac v1")
    assert [one in shown for one in (*made, "leaf_hash(", "event_digest(")] == [
        True,
        True,
        False,
        False,
    ]


async def test_look_ups_of_many_ask_an_index_for_each(world, owner):
    """Also by a plan that was made when PostgreSQL had counted no rows."""
    owner.execute("analyze")
    asked = {
        "live": (queries("service.claims").context, [["a"], [uuid4()], [uuid4()], b""]),
        "accounts": (queries("projections.partners").last_events, [[uuid4()]]),
    }
    for schema, (sql, args) in asked.items():
        async with world.service.ledger(schema).database.reads.connection() as connection:
            plan = await connection.fetch(f"explain {sql.on(schema)}", *args)
        assert "Join Filter" not in "\n".join(line for (line,) in plan)


async def test_the_claims_of_an_erasure_are_not_compared_each_with_each(world):
    """A plan made before the log's claims are known would look through all of them for each row."""
    sql = queries("service.privacy").claims_of_entity.on("live")
    async with world.service.modes["live"].ledger.database.background.connection() as connection:
        await connection.execute("set plan_cache_mode = force_generic_plan")
        await connection.execute(f"prepare claims_of_entity (text, text[], uuid[]) as {sql}")
        plan = await connection.fetch("explain execute claims_of_entity ('a', '{}', '{}')")
    shown = "\n".join(line for (line,) in plan)
    assert [one in shown for one in ("Seq Scan", "<> ALL", "Join Filter")] == [False] * 3


async def test_what_a_claim_runs_is_planned_once(world):
    """PostgreSQL would plan for arrays of one value each time, longer than it looks them up."""
    partner, entity_id = await world.connected()
    ledger = world.service.modes["live"].ledger
    followers = [Subscription(ledger, one) for one in world.service.parking["live"]]
    for number in range(7):
        await partner.claim(entity_id, f"case-{number}")
        await Sequencer(ledger).step()
        for follower in followers:
            await follower.step()
    databases = (ledger.database, world.service.accounts.database)
    planned: list[str] = []
    for pool in [pool for one in databases for pool in (one.reads, one.writes)]:
        async with pool.connection() as connection:
            planned += [row["statement"] for row in await connection.fetch(CUSTOM)]
    async with ledger.database.background.connection() as connection:
        planned += [
            row["statement"]
            for row in await connection.fetch(CUSTOM)
            if "as bounded" in row["statement"]
        ]
    assert planned == []


FILLED = """
with added as (
    insert into live.events (originator_id, originator_version, topic, state, mac)
    select gen_random_uuid(), 1, case when n % 2 = 0 then 'ClaimCreated' else 'Other' end, '', null
    from generate_series(1, 20000) as n
    returning append_id
)
insert into live.log (position, append_id, leaf_hash)
select
    (select size from live.head) + row_number() over (order by append_id desc),
    append_id,
    sha256('')
from added
"""
"""A log that is numbered in another order than its events were appended in."""


@pytest.mark.parametrize("counted", [False, True], ids=["no statistics", "statistics"])
async def test_a_rebuild_reads_each_event_of_a_page_once(module_database_url, counted):
    """By the settings of its session, which have no other joins than nested loops."""
    page = queries("service.ledger.rebuild").page.on("live")
    async with connected(module_database_url) as session:
        before = await session.fetchval("select size from live.head")
        await session.execute(FILLED)
        await session.execute("update live.head set size = size + 20000")
        if counted:
            await session.execute("analyze live.log, live.events")
        given = (before + 5_000, before + 5_000 + PAGE_POSITIONS, ["ClaimCreated"], PAGE_BYTES_MAX)
        rows = await session.fetch(page, *given)
        found = await session.fetchval(f"explain (analyze, format json) {page}", *given)
        wanted = await session.fetch(
            "select l.position, l.append_id from live.log as l join live.events using (append_id)"
            " where position > $1 and position <= $2 and topic = any($3) order by 1",
            *given[:3],
        )
    assert [row[:2] for row in rows] == [tuple(row) for row in wanted]
    assert len(rows) == PAGE_POSITIONS / 2
    for node in nodes_of(json.loads(found)[0]["Plan"]):
        removed = node.get("Rows Removed by Join Filter", 0)
        assert (node["Actual Rows"] + removed) * node["Actual Loops"] <= PAGE_POSITIONS, node
