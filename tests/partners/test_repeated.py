"""Commands whose answer was lost are repeated, and make nothing twice."""

from datetime import timedelta

import pytest

from service.core.errors import Refusal
from tests.memory_ledger import memory_world
from tests.world import STAFF


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a service in memory."""
    return memory_world(tmp_path_factory.mktemp("world"))


async def test_a_partner_is_added_once_for_a_reference(world):
    """A repetition returns the first one's id; another partner under the reference is refused."""
    commands = world.service.partners
    first = await commands.add("A partner", "a@example.com", STAFF, once="ticket 1")
    await commands.approve(first, STAFF)
    assert await commands.add("A partner", "a@example.com", STAFF, once="ticket 1") == first
    assert await commands.add("A partner", "a@example.com", STAFF, once="ticket 2") != first
    assert await commands.add("A partner", "a@example.com", STAFF) != first
    with pytest.raises(Refusal, match="reference_used"):
        await commands.add("Another", "a@example.com", STAFF, once="ticket 1")
    assert (await commands.look(first)).status == "approved"


async def test_a_business_is_added_once_for_a_reference(world):
    """A repetition returns the first one's id, although the address is taken by then."""
    commands = world.service.modes["live"].entities
    business = ("Bakery", "bakery@example.com", "12")
    first = await commands.add(*business, STAFF, once="ticket 1")
    assert await commands.add(*business, STAFF, once="ticket 1") == first
    with pytest.raises(Refusal, match="onboarding_unavailable"):
        await commands.add(*business, STAFF)
    for other in (("Bakery", "bakery@example.com", None), ("B", "b@example.com", None)):
        with pytest.raises(Refusal, match="reference_used"):
            await commands.add(*other, STAFF, once="ticket 1")


async def test_a_key_is_issued_once_for_a_reference(world):
    """Its token cannot be shown again: the refusal names the key, to be rolled or revoked."""
    partner_id = (await world.partner()).partner_id
    commands = world.service.partners
    issued = await commands.issue_key(partner_id, "live", STAFF, once="ticket 1")
    with pytest.raises(Refusal, match="key_state") as refused:
        await commands.issue_key(partner_id, "live", STAFF, once="ticket 1")
    assert f"{issued.key_id} has already been issued by this request" in refused.value.message
    assert "cannot be shown again" in refused.value.message
    assert issued.token.split(".")[2] not in refused.value.message
    other = (await world.partner()).partner_id
    assert (await commands.issue_key(other, "live", STAFF, once="ticket 1")).key_id != issued.key_id


@pytest.mark.parametrize("overlap", [timedelta(), timedelta(hours=1)])
async def test_a_repeated_roll_names_the_key_that_was_made(world, overlap):
    """Without an overlap nobody has a working token, if the answer was lost: it is rolled again."""
    partner = await world.partner()
    key_id = partner.keys["live"].split(".")[1]
    commands = world.service.partners
    issued = await commands.roll_key(partner.partner_id, key_id, overlap, STAFF)
    with pytest.raises(Refusal, match="key_state") as refused:
        await commands.roll_key(partner.partner_id, key_id, overlap, STAFF)
    assert f"{issued.key_id} has already taken this key's place" in refused.value.message
    again = await commands.roll_key(partner.partner_id, issued.key_id, timedelta(), STAFF)
    assert again.key_id not in {key_id, issued.key_id}
