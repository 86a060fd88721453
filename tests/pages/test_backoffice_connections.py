"""Connecting and disconnecting by the team, without a browser."""

import pytest

from service.facts.connections import connection_stream
from service.pages.formats import moment
from tests.pages.visitor import Visitor
from tests.world import STAFF

OPEN = "select entity_id from live.entities where not established"


@pytest.fixture
async def ids(world):
    """Return the ids of a partner and of a business that is connected to it."""
    partner = await world.partner()
    live = world.service.modes["live"]
    entity = await live.entities.add("Bakery", "owner@example.com", None, STAFF)
    await partner.connect(entity)
    return {"partner": partner.partner_id, "entity": entity}


async def test_only_connectable_parties_are_connected(world, ids, staff):
    """No pending partner, unfinished onboarding or sandbox entity."""
    pending = await world.service.partners.add("Books", "p@example.com", STAFF)
    other = await world.partner()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "new@example.com"}
    await other.call("POST", "/onboardings", json=body)
    async with world.service.modes["live"].ledger.database.writes.connection() as connection:
        opened = await connection.fetchval(OPEN)
    sandbox = await world.service.sandbox.ensure(ids["partner"])
    for entity_id, partner_id, code in (
        (ids["entity"], pending, "partner_state"),
        (ids["entity"], "ptn_none", "partner_not_found"),
        (opened, ids["partner"], "entity_state"),
        (sandbox.unconnected_entity_id, ids["partner"], "Nothing has this ID"),
    ):
        path = f"/backoffice/entities/{entity_id}/connect"
        answer = await staff.post(path, partner_id=partner_id)
        assert answer.status_code in {404, 409}, code
        assert code in answer.text


async def test_the_confirmation_shows_an_earlier_connection(world, ids, staff):
    """It says who ended it and when, or that it still holds."""
    path = f"/backoffice/entities/{ids['entity']}/connect?partner_id={ids['partner']}"
    live = world.service.modes["live"]
    assert "has been connected to this business since" in (await staff.get(path)).text
    owner = await Visitor(world).sign_in("owner@example.com")
    await owner.confirm(f"/account/{ids['entity']}/{ids['partner']}/disconnect")
    access = await live.connection_list.access(ids["partner"], ids["entity"])
    ended = (await staff.get(path)).text
    assert "The customer disconnected" in ended
    assert moment(access.disconnected_at) in ended
    await live.connections.connect_by_staff(ids["entity"], ids["partner"], STAFF)
    await live.connections.disconnect(ids["entity"], ids["partner"], STAFF)
    ended = (await staff.get(path)).text
    assert "The customer disconnected" not in ended
    assert f"by <code>{STAFF.actor}</code>" in ended


async def test_connecting_twice_is_one_event(world, ids, staff):
    """A form that is sent twice shows the id again."""
    partner = await world.partner()
    path = f"/backoffice/entities/{ids['entity']}"
    version = await staff.version(f"{path}/connect?partner_id={partner.partner_id}")
    for _ in range(2):
        form = {"partner_id": partner.partner_id, "version": version}
        answer = await staff.post(f"{path}/connect", **form)
        assert answer.headers["location"] == f"{path}/handed/{partner.partner_id}"
    live = world.service.modes["live"].ledger
    async with live.transaction() as transaction:
        stream = connection_stream("live", partner.partner_id, ids["entity"])
        assert len(await transaction.read(stream)) == 1


async def test_forms_about_an_earlier_state_of_a_connection_change_nothing(world, ids, staff):
    """The customer disconnected, or connected again, after the page was made."""
    live = world.service.modes["live"]
    entity_id, partner_id = ids["entity"], ids["partner"]
    path = f"/backoffice/entities/{entity_id}"
    ending = await staff.version(f"{path}/disconnect/{partner_id}")
    await live.connections.disconnect(entity_id, partner_id, STAFF)
    connecting = await staff.version(f"{path}/connect?partner_id={partner_id}")
    await live.connections.connect_by_staff(entity_id, partner_id, STAFF)
    answer = await staff.post(f"{path}/disconnect/{partner_id}", version=ending)
    assert (answer.status_code, "form_outdated" in answer.text) == (409, True)
    assert (await live.connection_list.access(partner_id, entity_id)).connected
    await live.connections.disconnect(entity_id, partner_id, STAFF)
    answer = await staff.post(f"{path}/connect", partner_id=partner_id, version=connecting)
    assert (answer.status_code, "form_outdated" in answer.text) == (409, True)
    assert not (await live.connection_list.access(partner_id, entity_id)).connected
