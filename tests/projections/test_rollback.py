"""Going back to the rows that a rebuild has replaced."""

import asyncio

import pytest
from psycopg.errors import UniqueViolation

from service.core.clock import to_milliseconds
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.session import rebuild_session
from service.ledger.rebuild.swap import MadeBy, swap
from tests.projections.history import number_all
from tests.projections.rebuilding import model, quiet, rebuild, rollback, verify
from tests.world import STAFF

pytestmark = pytest.mark.followed

MIGRATIONS = {
    "alter table live.connections add column note text not null default ''": (
        "connections: column note text not null default ''::text"
    ),
    "alter table live.connections alter column partner_id type varchar(99)": (
        "connections: column partner_id character varying(99)"
    ),
    "alter table live.connect_links add constraint some_check check (partner_id <> '')": (
        "connect_links: constraint some_check CHECK"
    ),
    "create unique index once on live.connections (entity_id, partner_id, connected_at)": (
        "connections: CREATE UNIQUE INDEX once"
    ),
    "grant truncate on live.connections to claim_ledger_accounts": (
        "connections: TRUNCATE to claim_ledger_accounts"
    ),
    "revoke update on live.connections from claim_ledger_live": (
        "connections: UPDATE to claim_ledger_live is there no longer"
    ),
}
"""What a later release may do to a kept table, and how a refusal names it."""

STAGES = "select n_distinct from pg_stats where schemaname = 'live' and attname = 'stage'"


async def test_a_rollback_goes_back_and_forth_with_what_happened_since(
    world, claims, owner, database_url
):
    """The kept rows are live again, wrong ones too, with the claims that were created meanwhile."""
    partner, entity_id, made = claims
    owner.execute("update live.claim_list set stage = 'settled' where claim_id = %s", [made[5]])
    claim_list = model(world, "claim_list")
    await rebuild(database_url, claim_list)
    later = (await partner.claim(entity_id, "later")).json()["claim_id"]
    await world.service.modes["live"].claims.move(made[6], "judgment", STAFF)
    await rollback(database_url, claim_list)
    found = await verify(database_url, claim_list)
    assert [(one.key, one.columns) for one in found.differences] == [(made[5], ("stage",))]
    latest = (await partner.claim(entity_id, "latest")).json()["claim_id"]
    await rollback(database_url, claim_list)
    assert (await verify(database_url, claim_list)).total == 0
    listed = await partner.call("GET", f"/claims?entity_id={entity_id}")
    ids = [one["claim_id"] for one in listed.json()["claims"]]
    assert ids == [latest, later, *reversed(made)]


async def test_of_two_operators_one_rolls_back(world, database_url):
    """By when the rows were made that each wants replaced: the other would undo it."""
    claim_list = model(world, "claim_list")
    made_at = to_milliseconds((await rebuild(database_url, claim_list)).swapped.live.at)
    both = (rollback(database_url, claim_list, made_at) for _ in range(2))
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(one).__name__ for one in outcomes) == ["RebuildRefused", "Swapped"]
    with pytest.raises(RebuildRefused, match="live rows were made before any rebuild, not at 20"):
        await rollback(database_url, claim_list, made_at)
    await rollback(database_url, claim_list)
    assert (await rollback(database_url, claim_list, made_at)).kept.at is not None


@pytest.mark.usefixtures("claims")
async def test_there_is_no_rollback_without_kept_rows(world, database_url):
    """Before the first rebuild nothing is kept."""
    with pytest.raises(RebuildRefused, match="no previous claim_list is kept in live"):
        await rollback(database_url, model(world, "claim_list"))


async def test_a_rollback_that_is_cut_off_can_be_made_again(world, claims, owner, database_url):
    """What it had brought up to date is not applied a second time."""
    partner, entity_id, _ = claims
    claim_list = model(world, "claim_list")
    await rebuild(database_url, claim_list)
    for number in range(3):
        await partner.claim(entity_id, f"later-{number}")
    await number_all(claim_list.ledger)
    async with rebuild_session(database_url, "live") as shop:
        (kept,) = owner.execute(
            "select previous_position from live.read_models where name = 'claim_list'"
        ).fetchone()
        builder = shop.builder(claim_list, "live_previous", quiet)
        await builder.load(BuildProgress(kept), await builder.target())  # as far as a kill lets it
    await rollback(database_url, claim_list)
    assert (await verify(database_url, claim_list)).total == 0


@pytest.mark.parametrize(("migration", "named"), MIGRATIONS.items())
async def test_rows_of_before_a_migration_are_not_gone_back_to(
    world, claims, owner, database_url, migration, named
):
    """Statements need the tables as they are now; the refusal names what the kept ones lack."""
    partner, _, _ = claims
    one = model(world, "connect_links" if "connect_links" in migration else "connections")
    await rebuild(database_url, one)
    owner.execute(migration)
    with pytest.raises(RebuildRefused, match="a migration has changed") as refused:
        await rollback(database_url, one)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)
    link = await partner.call("POST", "/connect-requests", json={"partner_user_id": "u"})
    assert link.status_code == 201, link.text


@pytest.mark.usefixtures("claims")
async def test_rows_are_not_gone_back_to_whose_index_the_live_ones_have_invalid(
    world, owner, database_url
):
    """Whoever made it wanted no duplicates, of which the live rows have some."""
    connections = model(world, "connections")
    await rebuild(database_url, connections)
    owner.execute(
        "insert into live.connections select partner_id, 'ent_x', version, connected_at"
        " from live.connections"
    )
    with pytest.raises(UniqueViolation):
        owner.execute("create unique index concurrently once on live.connections (partner_id)")
    owner.execute("create unique index once on live_previous.connections (partner_id)")
    with pytest.raises(
        RebuildRefused, match=r"UNIQUE INDEX once .*\(partner_id\) invalid is missing"
    ):
        await rollback(database_url, connections)


@pytest.mark.usefixtures("claims")
async def test_rows_of_before_an_option_of_statistics_have_it_when_they_are_back(
    world, owner, database_url
):
    """A plan would read too many of them, and those that a rebuild makes like them."""
    claim_list = model(world, "claim_list")
    await rebuild(database_url, claim_list)
    owner.execute("alter table live.claim_list alter column stage set (n_distinct = 77)")
    await rollback(database_url, claim_list)
    assert owner.execute(STAGES).fetchall() == [(77,)]
    await rebuild(database_url, claim_list)
    assert owner.execute(STAGES).fetchall() == [(77,)]


async def test_a_migration_during_a_rebuild_is_noticed_at_its_swap(world, owner, database_url):
    """The new tables were made like those of before."""
    connections = model(world, "connections")
    async with rebuild_session(database_url, "live") as session:
        builder = session.builder(connections, "live_next", quiet)
        built = await builder.build(may_skip=False)
        owner.execute("alter table live.connections add column note text")
        with pytest.raises(RebuildRefused, match="connections: column note text"):
            await swap(builder, built, MadeBy(1, None))
    assert (await rebuild(database_url, connections)).swapped is not None
