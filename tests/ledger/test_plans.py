"""Plans do not depend on what the tables held when a session made them."""

from uuid import uuid4

import pytest

from service.ledger.following.runner import Subscription
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries

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
            f"explain (verbose) {numbering}", 0, 100, 1000, uuid4(), "EventsBound"
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
        "live": (queries("service.claims").context, [["a"], [uuid4()], [uuid4()]]),
        "accounts": (queries("projections.partners").authenticate, [["a"], ["b"]]),
    }
    for schema, (sql, args) in asked.items():
        async with world.service.ledger(schema).database.reads.connection() as connection:
            plan = await connection.fetch(f"explain {sql.on(schema)}", *args)
        assert "Join Filter" not in "\n".join(line for (line,) in plan)


async def test_what_a_claim_runs_is_planned_once(world):
    """PostgreSQL would plan for arrays of one value each time, longer than it looks them up."""
    partner = await world.partner()
    entity_id = await partner.connected_entity()
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
