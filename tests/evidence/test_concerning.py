"""What concerns an entity is found by an index, and is what the whole log says."""

import json

import pytest

from service.core.errors import Refusal
from service.evidence.export.concerning import concerning
from service.facts.lineages import lineage_stream
from service.ledger.following.runner import Subscription
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from tests.evidence.evidence_world import history, keyed_settings, later
from tests.plans import nodes_of
from tests.tables import every_row
from tests.world import world_on

OTHERS = 5_000
FILL = """
with numbers as (
    select n, gen_random_uuid() as stream from generate_series(%s + 1::bigint, %s) as n
), made as (
    insert into live.events (originator_id, originator_version, topic, state)
    select stream, 1, 'ClaimCreated', convert_to(
        '{"data":{"claim_id":"clm_' || n || '","entity_id":"ent_' || n || '"}}', 'UTF8')
    from numbers
    returning append_id, originator_id
), numbered as (
    insert into live.log (position, append_id, leaf_hash)
    select n, append_id, sha256('') from numbers join made on originator_id = stream
)
insert into live.activity
select subject || n, n, 'ClaimCreated', now(), 'a', 'r'
from numbers, unnest(array['clm_', 'ent_']) as subject
"""


@pytest.fixture
async def world_of_two(database_url, tmp_path):
    """Return a world with a little history, which nothing follows, and an entity of it."""
    settings = keyed_settings(database_url, tmp_path / "mail")
    async with world_on(settings, tmp_path / "mail", follow=False) as one:
        entity_id, claim_id = await history(one)
        await later(one, entity_id, claim_id)
        await Sequencer(one.service.modes["live"].ledger).number_committed()
        yield one, entity_id


async def test_the_index_finds_what_the_log_has(world_of_two, owner):
    """However far it has come, whatever it has put aside, and from and up to each position."""
    world, entity_id = world_of_two
    ledger = world.service.modes["live"].ledger
    activity = next(one for one in world.service.parking["live"] if one.name == "activity")
    while await Subscription(ledger, activity).step():
        pass
    (size,) = owner.execute("select size from live.head").fetchone()
    whole = await concerning(ledger, entity_id, size, search=True)
    assert 10 < len(whole) < size
    with every_row() as row:
        for reached in (size, size - 3, size // 2, 1, 0):
            owner.execute("delete from live.activity where position > %s", [reached])
            owner.execute("update live.subscriptions set position = %s", [reached])
            for first, last in ((1, size), (size // 2, size), (1, size // 2), (whole[-1], size)):
                with row("reached", reached, first, last):
                    expected = [one for one in whole if first <= one <= last]
                    assert await concerning(ledger, entity_id, last, first) == expected
            put_aside = [whole[2], whole[-2], 1]
            owner.execute("delete from live.activity where position = any(%s)", [put_aside])
            owner.execute(
                "insert into live.parked select 'activity', one, gen_random_uuid(), '', now()"
                " from unnest(%s::bigint[]) as one on conflict do nothing",
                [put_aside],
            )
    for unknown in ("ent_9", ""):
        with pytest.raises(Refusal, match="entity_not_found"):
            await concerning(ledger, unknown, size, search=True)


async def test_the_log_is_not_read_for_it(world_of_two, owner):
    """Among thousands of other events those of the entity are read, each by an index."""
    ledger, asked = world_of_two[0].service.modes["live"].ledger, queries("service.evidence.export")
    (size,) = owner.execute("select size from live.head").fetchone()
    last = size + OTHERS
    owner.execute(FILL, [size, last])
    async with ledger.database.background.connection() as connection:
        explained = f"explain (analyze, format json) {asked.entity.on('live')}"
        arguments = (last, f"ent_{last - 9}", lineage_stream("live"), 1, last)
        ((plan,),) = await connection.fetch(explained, *arguments)
        assert await connection.fetch(asked.entity.on("live"), *arguments) == [(last - 9, True)]
    read = [one for one in nodes_of(json.loads(plan)[0]["Plan"]) if one["Actual Loops"]]
    assert {one.get("Relation Name") for one in read} >= {"activity", "events", "log"}
    for one in read:
        if "Relation Name" in one:
            rows = one["Actual Rows"] + one.get("Rows Removed by Filter", 0)
            assert rows * one["Actual Loops"] <= 4, one
