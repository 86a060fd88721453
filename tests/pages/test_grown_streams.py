"""A stream that its people made long costs nobody more than what is new in it."""

import pytest

from service.facts.partners import PartnerSettingsChanged, partner_stream
from service.ledger.events import Cause
from service.ledger.writing import Append
from tests.ledger.decoded import decoded
from tests.pages.visitor import Visitor
from tests.world import STAFF, settings_for, world_on

CHANGES = 5_000
NEW = 3
"""Events that a look may decode: what was appended since the last one, and no more."""


@pytest.fixture
async def grown(database_url, tmp_path):
    """Return a pending partner whose settings were changed so often, and its visitor."""
    settings = settings_for(database_url, tmp_path)
    async with world_on(settings, tmp_path, follow=False) as world:
        visitor = await Visitor(world).sign_in("stranger@example.com")
        partner_id = await world.service.partners.apply(
            company="Long",
            contact_name="L",
            use="Settings.",
            email="stranger@example.com",
            cause=STAFF,
        )
        for first in range(0, CHANGES, 1000):
            changed = [
                PartnerSettingsChanged(partner_id, return_link=bool(nr % 2), suppress_email=False)
                for nr in range(1000)
            ]
            cause = Cause("member:per_x", "req_x")
            async with world.service.accounts.transaction() as transaction:
                stream = partner_stream(partner_id)
                await transaction.append(Append(stream, 2 + first, changed, cause))
        yield world, visitor, partner_id


async def test_a_long_stream_is_decoded_once(grown):
    """By the first who asks; then pages, forms and callers read what is new."""
    world, visitor, partner_id = grown
    path, commands = f"/console/{partner_id}", world.service.partners
    with decoded() as topics:
        assert (await visitor.get(f"{path}/settings")).status_code == 200
    assert len(topics) <= CHANGES + 2 + NEW
    await world.service.partner_list.current(partner_id)
    for page in ("settings", "team", "keys", "checklist", ""):
        with decoded() as topics:
            assert (await visitor.get(f"{path}/{page}".rstrip("/"))).status_code == 200
        assert len(topics) <= NEW, page
    with decoded() as topics:
        await commands.change_settings(partner_id, STAFF, return_link=False)
        assert (await visitor.post(f"{path}/settings")).status_code == 303
    assert len(topics) <= NEW
    with decoded() as topics:
        assert (await world.service.partner_list.current(partner_id)).status == "pending"
        assert not (await commands.look(partner_id)).return_link
        await commands.profile(partner_id)
        await world.service.reviews.look(partner_id)
    assert len(topics) <= NEW


async def test_a_partner_is_changed_so_often_in_a_day(grown):
    """By all of its people together; what takes access away is always possible."""
    world, visitor, partner_id = grown
    path, commands = f"/console/{partner_id}", world.service.partners
    refused = await visitor.confirm(f"{path}/settings")
    assert (refused.status_code, "today" in refused.text) == (429, True)
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    await commands.approve(partner_id, STAFF)
    await commands.add_member(partner_id, "third@example.com", STAFF)
    issued = await commands.issue_key(partner_id, "test", STAFF)
    live = await commands.issue_key(partner_id, "live", STAFF)
    roll = await visitor.post(f"{path}/keys/{live.key_id}/roll", overlap="now")  # takes a proof
    assert (roll.status_code, "pk_live_" in roll.text) == (200, True)
    assert (await visitor.post(f"{path}/reference")).status_code == 429
    assert (await visitor.post(f"{path}/keys/{issued.key_id}/revoke")).status_code == 303
    (_, third) = (await commands.look(partner_id)).members
    assert (await visitor.post(f"{path}/team/{third}/remove")).status_code == 303
    partner = await commands.look(partner_id)
    assert (len(partner.members), partner.keys[issued.key_id].revoked) == (1, True)
