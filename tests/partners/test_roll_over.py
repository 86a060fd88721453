"""A key that was rolled ends to the second, by the clock alone, wherever it is used."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from service.core.errors import Refusal
from tests.memory_ledger import memory_world
from tests.world import STAFF, claim_body, settings_for, world_on

HOUR = timedelta(hours=1)
MILLISECOND = timedelta(milliseconds=1)


class Hands:
    """A clock that a test sets."""

    def __init__(self):
        self.at = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)

    def __call__(self):
        """Return the moment that was set."""
        return self.at


@pytest.fixture(scope="module")
def clock():
    """Return a clock that stands still."""
    return Hands()


@pytest.fixture(scope="module")
def world(tmp_path_factory, clock):
    """Return a service in memory whose clock the tests set: each has a partner of its own."""
    return memory_world(tmp_path_factory.mktemp("world"), clock=clock)


async def code_of(world, token):
    """Return how a call with a token ends: the entity is unknown, if it is let in."""
    headers = {"Authorization": f"Bearer {token}"}
    answer = await world.client.post("/v1/claims", headers=headers, json=claim_body("ent_x"))
    return answer.json()["code"]


async def rolled(world, overlap, mode="live"):
    """Return a partner, the id and token of its old key, and the new one's token."""
    partner = await world.partner()
    key_id = partner.keys[mode].split(".")[1]
    issued = await world.service.partners.roll_key(partner.partner_id, key_id, overlap, STAFF)
    return partner, key_id, partner.keys[mode], issued.token


async def test_the_old_key_works_to_the_second(world, clock):
    """It is let in until a millisecond before its moment, and revoked from that moment on."""
    overlaps = (timedelta(seconds=1), HOUR, 24 * HOUR, 168 * HOUR)
    for mode, overlap in itertools.product(("live", "test"), overlaps):
        _, _, old, new = await rolled(world, overlap, mode)
        begin = clock.at
        before = await code_of(world, old)
        clock.at = begin + overlap - MILLISECOND
        last = await code_of(world, old)
        clock.at = begin + overlap
        first = await code_of(world, old)
        clock.at = begin + overlap + HOUR
        later = await code_of(world, old)

        assert (before, last) == ("entity_not_found", "entity_not_found"), (mode, overlap)
        assert (first, later) == ("auth_revoked", "auth_revoked"), (mode, overlap)
        assert await code_of(world, new) == "entity_not_found", (mode, overlap)


async def test_it_ends_in_every_process(clock, database_url, tmp_path):
    """Each process on a database refuses it from the same moment, and no job runs."""
    settings = settings_for(database_url, tmp_path)
    async with (
        world_on(settings, tmp_path, follow=False, clock=clock) as one,
        world_on(settings, tmp_path, follow=False, clock=clock) as other,
    ):
        _, _, old, _ = await rolled(one, HOUR)
        clock.at += HOUR - MILLISECOND
        last = [await code_of(world, old) for world in (one, other)]
        clock.at += MILLISECOND
        first = [await code_of(world, old) for world in (one, other)]

    assert (last, first) == (["entity_not_found"] * 2, ["auth_revoked"] * 2)


async def test_without_an_overlap_the_old_key_ends_at_once(world, clock):
    """Whatever a clock says: one that is behind does not bring a revoked key back."""
    _, _, old, new = await rolled(world, timedelta())
    clock.at -= HOUR

    assert await code_of(world, old) == "auth_revoked"
    assert await code_of(world, new) == "entity_not_found"


async def test_an_earlier_end_wins(world, clock):
    """A key that is to end can be revoked before; its end stays where it came first."""
    partner, key_id, old, _ = await rolled(world, HOUR)
    commands, begin = world.service.partners, clock.at
    clock.at = begin + HOUR / 2
    await commands.revoke_key(partner.partner_id, key_id, STAFF)
    await commands.revoke_key(partner.partner_id, key_id, STAFF)
    revoked = await code_of(world, old)
    clock.at = begin
    rows = await world.service.partner_list.keys(partner.partner_id)

    assert revoked == await code_of(world, old) == "auth_revoked"
    assert [begin + HOUR / 2] == [one["revoked_at"] for one in rows if one["revoked_at"]]


async def test_the_end_that_came_stays(world, clock):
    """Revoking a key after its moment changes nothing."""
    partner, key_id, _, _ = await rolled(world, HOUR)
    begin = clock.at
    clock.at = begin + 2 * HOUR
    version = (await world.service.partners.look(partner.partner_id)).version
    await world.service.partners.revoke_key(partner.partner_id, key_id, STAFF)
    rows = await world.service.partner_list.keys(partner.partner_id)

    assert version == (await world.service.partners.look(partner.partner_id)).version
    assert [begin + HOUR] == [one["revoked_at"] for one in rows if one["revoked_at"]]


async def test_a_key_is_rolled_once(world):
    """A second attempt is refused, and leaves no key behind."""
    partner, key_id, _, _ = await rolled(world, HOUR)
    before = await world.service.partner_list.keys(partner.partner_id)
    with pytest.raises(Refusal) as refused:
        await world.service.partners.roll_key(partner.partner_id, key_id, HOUR, STAFF)

    assert refused.value.code == "key_state"
    assert before == await world.service.partner_list.keys(partner.partner_id)


async def test_a_wrong_secret_of_an_ended_key_learns_nothing(world, clock):
    """Only the holder of the secret is told that the key has ended."""
    _, _, old, _ = await rolled(world, HOUR)
    clock.at += HOUR

    assert await code_of(world, old[:-1] + ("a" if old[-1] != "a" else "b")) == "auth_bad_secret"
