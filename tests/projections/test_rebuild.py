"""Rebuilding read models: beside the live rows, equal to them, swapped in."""

import asyncio
from contextlib import suppress

import psycopg
import pytest

from projections.claim_list.projector import ClaimListProjector
from service.facts.catalogue import PARTNER_LEDGER
from service.ledger.connection import ReachableConnection
from service.ledger.events import ERASED
from service.ledger.following.runner import Subscription
from service.ledger.rebuild import build as building
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.session import rebuild_session
from service.ledger.rebuild.swap import MadeBy, swap
from service.ledger.sql import queries
from tests.patience import eventually
from tests.projections.history import History, number_all
from tests.projections.rebuilding import Hammering, model, quiet, rebuild, rollback, verify
from tests.world import settings_for, world_on

pytestmark = pytest.mark.followed

SHAPE = """
select c.relname, i.indexrelid::regclass::text as index, pg_get_indexdef(i.indexrelid) as defined,
    k.conname, pg_get_constraintdef(k.oid) as enforced, c.relacl::text, c.reloptions::text,
    pg_get_userbyid(c.relowner) as owner,
    (
        select json_object_agg(a.attname, o.option order by a.attname, o.option)
        from pg_attribute as a, unnest(a.attoptions) as o (option)
        where a.attrelid = c.oid and o.option not like 'pg_attver=%'
    )::text as columns
from pg_class as c
join pg_index as i on i.indrelid = c.oid
left join pg_constraint as k on k.conindid = i.indexrelid
where c.relnamespace = 'live'::regnamespace and c.relname in ('entities', 'claim_list')
order by 1, 2
"""

WAITING = "select count(*) from pg_locks where not granted"

KEPT = "select count(*) from pg_class where relnamespace = to_regnamespace('live_previous')"

HELD = """
select count(*) from pg_locks
where relation = 'live.claim_list'::regclass and mode = 'AccessExclusiveLock' and granted
"""

BUILT = "select count(*) from pg_class where relnamespace = to_regnamespace('live_next')"


async def until_someone_waits(owner):
    """Wait until a lock is waited for."""
    await eventually(lambda: owner.execute(WAITING).fetchone() > (0,))


async def test_every_read_model_of_a_random_history_rebuilds_equal(
    documents, database_url, monkeypatch
):
    """After a random history each rebuilt table has the rows of the live one, and is swapped in.

    Also where two processes make them in turn, of those that need no sealed field.
    """
    monkeypatch.setattr(building, "PART_EVENTS_MIN", 1)
    monkeypatch.setattr(building, "PAGE_POSITIONS", 20)
    await History(documents, seed=7).run(150)
    for one in documents.world.service.read_models:
        rebuilt = await rebuild(database_url, one, if_equal=True)
        assert rebuilt.compared.total == 0, (one.name, rebuilt.compared.differences)
        assert rebuilt.compared.rows > 0
        assert rebuilt.swapped is not None
        assert (await verify(database_url, one, processes=2)).total == 0


async def test_a_rebuilt_table_has_indexes_rights_and_owner_of_the_old_one(
    world, owner, database_url
):
    """Names and definitions are the same, and rights that an operator added stay."""
    owner.execute("do $$ begin create role a_reader; exception when duplicate_object then end $$")
    owner.execute("grant select on live.claim_list to a_reader with grant option")
    owner.execute("alter table live.claim_list set (fillfactor = 90)")
    before = owner.execute(SHAPE).fetchall()
    for name in ("claim_list", "connections"):
        await rebuild(database_url, model(world, name))
    assert len(before) == 10
    assert owner.execute(SHAPE).fetchall() == before


def test_marks_that_postgresql_keeps_in_a_column_are_not_its_options(owner):
    """PostgreSQL 15.20 and 17.12 keep one there of each column, which is of its table alone."""
    owner.execute("alter table live.claim_list alter column stage set (n_distinct_inherited = 9)")
    owner.execute("create schema marked")
    owner.execute(
        "create view marked.pg_attribute as select attrelid, attnum, attname, attisdropped,"
        " attoptions || array['pg_attver=26472272'] as attoptions from pg_catalog.pg_attribute"
    )
    columns = queries("service.ledger.rebuild").table_columns.on("live").replace("$1", "%s")
    plainly = owner.execute(columns, ["live.claim_list"]).fetchall()
    owner.execute("set search_path = marked, pg_catalog")
    assert owner.execute(columns, ["live.claim_list"]).fetchall() == plainly
    assert ("stage", "n_distinct=100, n_distinct_inherited=9") in plainly


async def test_wrong_rows_are_named_and_mended(world, claims, owner, database_url):
    """`verify` lists a changed, a deleted and an invented row; a rebuild makes them right."""
    _, _, made = claims
    owner.execute("update live.claim_list set stage = 'settled' where claim_id = %s", [made[2]])
    owner.execute("delete from live.claim_list where claim_id = %s", [made[3]])
    invented = "clm_00000000000000000000000000"
    owner.execute(
        "insert into live.claim_list select %s, 0, stream_id, partner_id, entity_id, 'invented',"
        " partner_user_id, partner_invoice_ids, stage, created_at from live.claim_list limit 1",
        [invented],
    )
    claim_list = model(world, "claim_list")
    found = await verify(database_url, claim_list)
    assert (found.rows, found.total) == (20, 3)
    assert {(one.key, one.fault, one.columns) for one in found.differences} == {
        (made[2], "changed", ("stage",)),
        (made[3], "missing", ()),
        (invented, "surplus", ()),
    }
    refused = await rebuild(database_url, claim_list, if_equal=True)
    assert (refused.swapped, refused.compared.total) == (None, 3)
    assert (await verify(database_url, claim_list)).total == 3
    mended = await rebuild(database_url, claim_list)
    assert mended.compared.total == 3
    assert (await verify(database_url, claim_list)).total == 0
    assert owner.execute(BUILT).fetchone() == (0,)


@pytest.mark.usefixtures("claims")
async def test_many_differences_are_counted_and_the_first_are_listed(world, owner, database_url):
    """Twenty rows a table are listed however many differ."""
    owner.execute("update live.claim_list set stage = 'settled'")
    owner.execute(
        "insert into live.claim_list select claim_id || 'x', append_id, stream_id, partner_id,"
        " entity_id, 'more', partner_user_id, partner_invoice_ids, stage, created_at"
        " from live.claim_list"
    )
    found = await verify(database_url, model(world, "claim_list"))
    assert (found.total, len(found.differences)) == (40, 20)


@pytest.mark.usefixtures("claims")
async def test_an_interrupted_rebuild_leaves_the_live_rows_and_can_begin_again(
    world, owner, database_url
):
    """Cut off while loading, and while waiting for the swap: it drops what it has built."""
    claim_list = model(world, "claim_list")
    await number_all(claim_list.ledger)  # of a log without positions nothing would be loaded

    def stop(_positions):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        async with rebuild_session(database_url, "live") as shop:
            await shop.rebuild(claim_list, stop, if_equal=False)
    with psycopg.connect(database_url) as reader:
        reader.execute("select from live.claim_list")
        task = asyncio.create_task(rebuild(database_url, claim_list))
        await until_someone_waits(owner)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert owner.execute(BUILT).fetchone() == (0,)
    assert owner.execute(KEPT).fetchone() == (0,)
    assert owner.execute("select count(*) from live.claim_list").fetchone() == (20,)
    assert (await verify(database_url, model(world, "connections"))).total == 0
    assert owner.execute(BUILT).fetchone() == (0,)
    again = await rebuild(database_url, claim_list, if_equal=True)
    assert (again.compared.rows, again.compared.total) == (20, 0)
    assert owner.execute(BUILT).fetchone() == (0,)


async def test_a_second_rebuild_of_a_ledger_is_refused(world, database_url):
    """While one works on a ledger; another ledger may be rebuilt."""
    async with rebuild_session(database_url, "live"):
        with pytest.raises(RebuildRefused, match="another rebuild or verification of live"):
            await rebuild(database_url, model(world, "claim_list"))
        await rebuild(database_url, model(world, "claim_list", "test"))
    assert (await rebuild(database_url, model(world, "claim_list"))).swapped is not None


async def test_a_swap_gives_up_while_a_long_transaction_is_open(world, claims, owner, database_url):
    """It says so, has changed nothing, and others were never held up for long."""
    partner, entity_id, _ = claims
    claim_list = model(world, "claim_list")
    with psycopg.connect(database_url) as reader:
        reader.execute("select from live.claim_list")
        async with rebuild_session(database_url, "live") as shop:
            builder = shop.builder(claim_list, "live_next", quiet)
            built = await builder.build(may_skip=False)
            swapping = asyncio.create_task(swap(builder, built, MadeBy(1, None), (0.01,) * 4))
            answers = [await partner.claim(entity_id, f"beside-{n}") for n in range(10)]
            assert [one.status_code for one in answers] == [201] * 10
            with pytest.raises(RebuildRefused, match="in use at each of 4 tries"):
                await swapping
    assert owner.execute(KEPT).fetchone() == (0,)
    assert (await verify(database_url, claim_list)).total == 0


async def test_no_row_is_copied_while_writers_wait(world, claims, owner, database_url, monkeypatch):
    """PostgreSQL would wait without a limit for the rows of a process that was stopped then."""
    partner, entity_id, _ = claims
    claim_list, held = model(world, "claim_list"), list[int]()
    copy = ReachableConnection.copy_records_to_table

    async def watched(*arguments, **more):
        held.append(owner.execute(HELD).fetchone()[0])
        return await copy(*arguments, **more)

    monkeypatch.setattr(ReachableConnection, "copy_records_to_table", watched)
    async with rebuild_session(database_url, "live") as shop:
        builder = shop.builder(claim_list, "live_next", quiet)
        built = await builder.build(may_skip=False)
        assert (await partner.claim(entity_id, "in the swap")).status_code == 201
        swapped, _ = await swap(builder, built, MadeBy(1, None))
    assert swapped.position > built.position
    assert set(held) == {0}
    assert (await verify(database_url, claim_list)).total == 0


async def test_a_subject_whose_key_is_destroyed_is_rebuilt_as_the_marker(
    world, claims, owner, database_url
):
    """A rebuild needs no key that has gone."""
    _, entity_id, _ = claims
    owner.execute(
        "delete from live.data_keys where key_id ="
        " (select stream_id from live.entities where entity_id = %s)",
        [entity_id],
    )
    done = await rebuild(database_url, model(world, "connections"))
    assert [(one.key, one.columns) for one in done.compared.differences] == [
        (entity_id, ("name", "email_hash"))
    ]
    row = owner.execute(
        "select name, email_hash from live.entities where entity_id = %s", [entity_id]
    ).fetchone()
    assert row == (ERASED, None)


@pytest.mark.usefixtures("claims")
async def test_an_event_that_cannot_be_applied_refuses_the_rebuild_with_its_position(
    world, database_url
):
    """The live rows stay as they are."""
    claim_list = model(world, "claim_list")

    class Failing(ClaimListProjector):
        topics = tuple(PARTNER_LEDGER.values())

        def project(self, recorded):
            """Fail at the second version of a stream."""
            if recorded.version == 2:
                raise ZeroDivisionError
            return ()

    await number_all(claim_list.ledger)
    broken = claim_list._replace(projector=Failing())
    with pytest.raises(RebuildRefused, match=r"position \d+ cannot be applied: ZeroDivisionError"):
        await rebuild(database_url, broken)
    assert (await verify(database_url, claim_list)).total == 0


async def test_a_catch_up_model_is_rebuilt_to_its_checkpoint_less_what_is_parked(
    database_url, tmp_path, owner
):
    """Its rows are compared with a replay as far as it has come; parked events stay put aside."""
    settings = settings_for(database_url, tmp_path)
    async with world_on(settings, tmp_path, follow=False) as world:
        activity = model(world, "activity", "accounts")
        (following,) = world.service.catch_up["accounts"]
        subscription = Subscription(activity.ledger, following)
        await world.partner()
        await number_all(activity.ledger)
        while await subscription.step():
            pass
        came_to = owner.execute("select max(position) from accounts.activity").fetchone()[0]
        owner.execute("delete from accounts.activity where position = %s", [came_to])
        found = await verify(database_url, activity)
        assert {(one.fault, one.table) for one in found.differences} == {("missing", "activity")}
        owner.execute(
            "insert into accounts.parked select 'activity', l.position, e.originator_id, 'x', now()"
            " from accounts.log as l join accounts.events as e using (append_id)"
            " where l.position = %s",
            [came_to],
        )
        await world.partner()
        await number_all(activity.ledger)
        done = await rebuild(database_url, activity)
        assert (done.swapped.position, done.compared.total) == (came_to, 0)
        while await subscription.step():
            pass
        assert (await verify(database_url, activity)).total == 0
        rows = owner.execute("select max(position) from accounts.activity").fetchone()
    assert rows > (came_to,)


async def test_writers_and_readers_notice_nothing_of_rebuilds(world, claims, owner, database_url):
    """Under load read models are rebuilt and swapped: every answer is good, every claim is there.

    Each claim that was answered is in the new table once.
    """
    async with Hammering(world, *claims) as people:
        again = ("claim_list", "activity")  # this puts away the rows that the first time has kept
        for name in ("claim_list", "connections", "connect_links", "activity", *again):
            done = await rebuild(database_url, model(world, name), if_equal=True)
            assert done.compared.total == 0, done.compared.differences
            assert done.swapped is not None
        await rollback(database_url, model(world, "claim_list"))
    for name in ("claim_list", "connections", "connect_links"):
        compared = await verify(database_url, model(world, name))
        assert compared.total == 0, compared.differences
    rows = owner.execute("select claim_id from live.claim_list").fetchall()
    assert len(people.answered) > 40
    assert sorted(row[0] for row in rows) == sorted(people.answered)
