"""Forms that arrive twice, whose first answer was lost: the second leads to what the first did."""

import asyncio

import pytest

from service.onboardings.commands import PURPOSE
from tests.pages.customers import EMAIL, business, link_of, refused
from tests.pages.visitor import Visitor
from tests.world import STAFF


async def test_an_approval_and_a_refusal_lead_to_their_results_again(world):
    """To the entity's id, and to what declining means; the other answer is refused as before."""
    partner = await world.partner()
    entity_id = await business(world)
    approved, declined = await link_of(partner), await link_of(partner)
    visitor = await Visitor(world).sign_in(EMAIL)
    for _ in range(2):
        answer = await visitor.post(declined, answer="decline")
        assert (answer.status_code, answer.headers["location"]) == (303, "/connect/declined")
    for _ in range(2):
        answer = await visitor.post(approved, answer="approve", entity_id=entity_id)
        shown = f"/connected/{entity_id}/{partner.partner_id}"
        assert (answer.status_code, answer.headers["location"]) == (303, shown)
    for path, code, status in (
        (approved, "connect_token_already_redeemed", 409),
        (declined, "connect_token_invalid", 400),
    ):
        other = {"answer": "decline" if path == approved else "approve", "entity_id": entity_id}
        refused(await visitor.post(path, **other), status, code)


async def test_an_approval_leads_to_its_connection_once_that_has_ended(world):
    """Sent again, it leads to what has become of it, not to a refusal."""
    partner = await world.partner()
    partner_id, entity_id = partner.partner_id, await business(world)
    path, visitor = await link_of(partner), await Visitor(world).sign_in(EMAIL)
    await visitor.post(path, answer="approve", entity_id=entity_id)
    await partner.disconnect(entity_id)
    answer = await visitor.post(path, answer="approve", entity_id=entity_id)
    onwards = await visitor.get(answer.headers["location"])
    own = f"/account/{entity_id}/{partner_id}"
    assert (onwards.status_code, onwards.headers.get("location")) == (303, own)
    assert (await visitor.get(own)).status_code == 200


async def test_somebody_elses_answer_is_not_led_to(world):
    """Another person learns nothing of who gave it: the link is used, or not valid."""
    partner = await world.partner()
    entity_id = await business(world)
    await business(world, "Theirs", "other@example.com")
    approved, declined = await link_of(partner), await link_of(partner)
    visitor = await Visitor(world).sign_in(EMAIL)
    await visitor.post(declined, answer="decline")
    await visitor.post(approved, answer="approve", entity_id=entity_id)
    other = await Visitor(world).sign_in("other@example.com")
    refused(await other.post(declined, answer="decline"), 400, "connect_token_invalid")
    answer = await other.post(approved, answer="approve", entity_id=entity_id)
    refused(answer, 409, "connect_token_already_redeemed")


async def test_an_onboarding_that_is_finished_twice_at_once_leads_to_its_entity_id(world):
    """The second was looked at before the first was written."""
    partner, secrets = await world.partner(), await world.service.secrets.get()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": EMAIL}
    made = await partner.call("POST", "/onboardings", json=body)
    path = f"/onboarding/{secrets.link_token(PURPOSE, made.json()['onboarding_id'])}"
    visitor = await Visitor(world).sign_in(EMAIL)
    both = await asyncio.gather(*(visitor.post(path, company_name="New") for _ in range(2)))
    assert [(one.status_code, one.headers.get("location")) for one in both] == [
        (303, f"{path}/done")
    ] * 2


@pytest.mark.parametrize("is_returned", [False, True])
async def test_a_finished_onboarding_leads_to_its_entity_id_again(world, is_returned):
    """To whoever may see it: a link that the partner had takes its person's signing in."""
    partner = await world.partner()
    await world.service.partners.change_settings(partner.partner_id, STAFF, return_link=is_returned)
    body = {"partner_user_id": "u", "company_name": "New", "user_email": EMAIL}
    made = await partner.call("POST", "/onboardings", json=body)
    secrets = await world.service.secrets.get()
    path = f"/onboarding/{secrets.link_token(PURPOSE, made.json()['onboarding_id'])}"
    visitor = await Visitor(world).sign_in(EMAIL)
    for _ in range(2):
        answer = await visitor.post(path, company_name="New")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/done")
    assert "ent_" in (await visitor.get(f"{path}/done")).text
    stranger = await Visitor(world).sign_in("stranger@example.com")
    shown = await stranger.get((await stranger.post(path)).headers["location"])
    assert (shown.status_code == 403) is is_returned


async def test_a_roll_is_led_to_its_key_again_and_a_colleagues_is_refused(world):
    """Whoever chose another end, or did not roll it, is told until when the old key works."""
    partner = await world.partner()
    partner_id, commands = partner.partner_id, world.service.partners
    rolled, revoked = (partner.keys[mode].split(".")[1] for mode in ("test", "live"))
    for email in (EMAIL, "colleague@example.com"):
        await commands.add_member(partner_id, email, STAFF)
    visitor, colleague = [
        await Visitor(world).sign_in(one) for one in (EMAIL, "colleague@example.com")
    ]
    path = f"/console/{partner_id}/keys"
    made = await visitor.post(f"{path}/{rolled}/roll", overlap="7d")
    again = await visitor.post(f"{path}/{rolled}/roll", overlap="7d")
    listed = again.headers["location"]
    assert (made.status_code, again.status_code) == (200, 303)
    assert listed.partition("=")[2] in (await visitor.get(listed)).text

    for one, overlap in ((visitor, "now"), (colleague, "7d"), (colleague, "now")):
        answer = await one.post(f"{path}/{rolled}/roll", overlap=overlap)
        assert (answer.status_code, "Nothing was changed" in answer.text) == (409, True)
        assert "still works until <time" in answer.text
        assert f'href="{path}/{rolled}/revoke"' in answer.text
    await commands.revoke_key(partner_id, revoked, STAFF)
    answer = await visitor.post(f"{path}/{revoked}/roll", overlap="now")
    assert (answer.status_code, "has not worked since <time" in answer.text) == (409, True)
    assert f'href="{path}/{revoked}/revoke"' not in answer.text
