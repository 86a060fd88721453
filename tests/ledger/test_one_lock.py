"""A lock that somebody holds stops the commands that need it, and nobody else's."""

import asyncio

import psycopg
import pytest

from service.archive.directory import DirectoryArchive
from service.facts.connections import connection_stream
from service.privacy.erasure_list import ErasureList
from tests.patience import PATIENCE_SECONDS, eventually
from tests.world import STAFF, deadline_of, settings_for, world_on


async def held(world, partner, entity_id):
    """Return a transaction that holds a connection's lock until it is closed."""
    transaction = world.service.modes["live"].ledger.transaction(background=PATIENCE_SECONDS)
    inside = await transaction.__aenter__()
    await inside.lock(connection_stream("live", partner.partner_id, entity_id))
    return transaction


@pytest.fixture
async def own_world(database_url, tmp_path):
    """Return a service of this test's own, with deadlines that another test may not need."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as one:
        yield one


async def test_a_locked_connection_stops_its_own_claims_alone(own_world):
    """Claims of other connections are written while its own wait for it."""
    stuck, other = [await own_world.partner() for _ in range(2)]
    locked, free = await stuck.connected_entity(), await other.connected_entity()
    holder = await held(own_world, stuck, locked)
    with deadline_of(own_world, PATIENCE_SECONDS):
        waiting = [asyncio.create_task(stuck.claim(locked, f"stuck-{nr}")) for nr in range(20)]
        answers = await asyncio.gather(*(other.claim(free, f"free-{nr}") for nr in range(20)))
        assert [answer.status_code for answer in answers] == [201] * 20
        assert not any(claim.done() for claim in waiting)
        await holder.__aexit__(None, None, None)
        answers = await asyncio.gather(*waiting)
    assert [answer.status_code for answer in answers] == [201] * 20


async def test_claims_of_a_connection_that_stays_locked_are_refused(own_world):
    """At their deadline, and they can be sent again; a write under way then may have come first."""
    partner, entity_id = await own_world.connected()
    holder = await held(own_world, partner, entity_id)
    with deadline_of(own_world, 0.5):
        refused = await asyncio.gather(*(partner.claim(entity_id, f"c-{nr}") for nr in range(20)))
    await holder.__aexit__(None, None, None)
    again = await asyncio.gather(*(partner.claim(entity_id, f"c-{nr}") for nr in range(20)))
    assert [answer.status_code for answer in refused] == [503] * 20
    assert {answer.status_code for answer in again} <= {200, 201}
    assert len({answer.json()["claim_id"] for answer in again}) == 20


async def test_a_claim_is_written_once_its_connection_is_free(own_world):
    """It is tried again until its deadline, and holds no lock of others meanwhile."""
    partner, entity_id = await own_world.connected()
    holder = await held(own_world, partner, entity_id)
    claim = asyncio.create_task(partner.claim(entity_id))
    other = await partner.connected_entity()
    assert (await partner.claim(other)).status_code == 201
    await partner.disconnect(other)
    assert not claim.done()
    await holder.__aexit__(None, None, None)
    assert (await claim).status_code == 201


async def test_an_erasure_that_waits_for_a_rebuild_holds_no_connection(
    own_world, database_url, erase_entity
):
    """Somebody holds a table that a rebuild builds; claims of the entity's partners are written."""
    partner, entity_id = await own_world.connected()
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("create schema if not exists live_next")
        owner.execute("create table live_next.entities (like live.entities including all)")
        owner.execute("grant usage on schema live_next to claim_ledger_live")
        owner.execute("grant all on live_next.entities to claim_ledger_live")
        with owner.transaction():
            owner.execute("lock table live_next.entities in share mode")
            erasure = asyncio.create_task(erase_entity(own_world, entity_id))
            await somebody_waits(database_url)
            answers = await asyncio.gather(*(partner.claim(entity_id, f"c-{n}") for n in range(20)))
            assert [answer.status_code for answer in answers] == [201] * 20
            assert not erasure.done()
    assert (await erasure).is_new


async def somebody_waits(database_url):
    """Return once somebody waits for the table."""
    query = "select count(*) from pg_locks where not granted and locktype = 'relation'"
    with psycopg.connect(database_url, autocommit=True) as asking:
        await eventually(lambda: asking.execute(query).fetchone() != (0,))


@pytest.fixture
def erase_entity(tmp_path):
    """Return what erases an entity, with an erasure list of the test's own."""
    directory = tmp_path / "archive"
    directory.mkdir()

    async def erase(world, entity_id):
        listed = ErasureList(DirectoryArchive(directory), world.service.secrets.get)
        parts = world.service.privacy(listed)["live"]
        subject = await parts.subjects.entity(entity_id)
        return await parts.erasures.erase(subject, "case 1", STAFF)

    return erase
