"""Pages take a half of a pool's connections, each visitor one: partners' calls have the others."""

import asyncio

import pytest

from service.core.visitors import visited_by
from service.ledger.database import Database
from service.ledger.sql import Sql
from tests.databases import login_url
from tests.lock_waits import waiting_for_locks
from tests.pages.visitor import Visitor
from tests.patience import PATIENCE_SECONDS, eventually
from tests.world import STAFF, settings_for, world_on

SIZE = 4
HELD = "lock table live.request_counts, live.request_days, live.requests in access exclusive mode"
DAYS = Sql("days", "", "select from ledger.request_days")
ONE = Sql("one", "", "select 1 as one")


@pytest.fixture
async def world(database_url, tmp_path):
    """Return a service with four places in each pool for requests."""
    settings = settings_for(database_url, tmp_path, POOL_SIZE=str(SIZE))
    async with world_on(settings, tmp_path, follow=False) as one:
        yield one


@pytest.fixture
async def database(database_url):
    """Return the database of the ledger live."""
    url = login_url(database_url, "live")
    one = Database(url, "live", pool_size=SIZE, deadline=PATIENCE_SECONDS)
    await one.open()
    yield one
    await one.close()


async def test_slow_pages_leave_connections_to_calls_and_to_other_people(world, owner):
    """One partner's hang in one connection, and all partners' in half of them."""
    calling = await world.partner()
    teams = [(await world.partner()).partner_id for _ in range(SIZE)]
    people = [
        await _member(world, partner_id, f"p{partner_id}@example.com") for partner_id in teams
    ]
    colleague = await _member(world, teams[0], "colleague@example.com")

    async def goes_on(person, partner_id):
        for _ in range(2 * SIZE):
            answers = await asyncio.gather(
                calling.call("GET", "/claims?entity_id=ent_00000000000000000000000000"),
                person.get(f"/console/{partner_id}/claims?mode=live"),
            )
            assert [answer.status_code for answer in answers] == [404, 200]

    slow = []
    with owner.transaction():
        owner.execute(HELD)
        slow += [_calls_of(one, teams[0]) for one in (people[0], colleague) for _ in range(SIZE)]
        await eventually(lambda: _waiting(owner))
        await goes_on(people[1], teams[1])
        assert _waiting(owner) == 1
        slow += [_calls_of(*one) for one in zip(people, teams, strict=True) for _ in range(SIZE)]
        await eventually(lambda: _waiting(owner) == SIZE // 2)
        for _ in range(2 * SIZE):
            answer = await calling.call("GET", "/claims?entity_id=ent_00000000000000000000000000")
            assert answer.status_code == 404
        assert _waiting(owner) == SIZE // 2
    assert {answer.status_code for answer in await asyncio.gather(*slow)} == {200}


async def test_a_person_has_one_connection_however_many_partners_they_work_for(world, owner):
    """They would take all that pages have, and other people's would wait."""
    teams = [(await world.partner()).partner_id for _ in range(SIZE // 2 + 1)]
    person = await _member(world, teams[0], "one@example.com")
    for partner_id in teams[1:]:
        await world.service.partners.add_member(partner_id, "one@example.com", STAFF)
    other = await _member(world, teams[-1], "other@example.com")
    with owner.transaction():
        owner.execute(HELD)
        slow = [_calls_of(person, partner_id) for partner_id in teams]
        await eventually(lambda: _waiting(owner))
        for _ in range(2 * SIZE):
            answer = await other.get(f"/console/{teams[-1]}/claims?mode=live")
            assert answer.status_code == 200
        assert _waiting(owner) == 1
    assert {answer.status_code for answer in await asyncio.gather(*slow)} == {200}


async def test_a_visitor_who_went_away_has_their_place_until_the_server_is_done(owner, database):
    """Whoever opens a page over and over has no more statements at work."""

    async def page(sql):
        with visited_by("person 1"):
            return await database.reads.fetch(sql)

    with owner.transaction():
        owner.execute(HELD)
        first = asyncio.create_task(page(DAYS))
        await eventually(lambda: _waiting(owner))
        first.cancel()
        others = [asyncio.create_task(page(DAYS)) for _ in range(SIZE)]
        assert await database.reads.fetch(ONE)
        assert database.reads.connections == (2, 1)
        others.pop().cancel()
    await asyncio.gather(first, *others, return_exceptions=True)
    assert await page(ONE)


async def _member(world, partner_id, email):
    """Return a member of a partner's team, signed in."""
    await world.service.partners.add_member(partner_id, email, STAFF)
    return await Visitor(world).sign_in(email)


def _calls_of(person, partner_id):
    """Open a page of a partner's calls, which reads the locked tables."""
    path = f"/console/{partner_id}/requests?mode=live&code=none"
    return asyncio.create_task(person.get(path))


def _waiting(owner):
    return waiting_for_locks(owner, "claim-ledger live reads")
