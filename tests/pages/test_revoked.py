"""A partner that was revoked: its people see no more of its customers, who see that it is."""

import re

from service.pages.console.frame import CONSOLE
from tests.pages.customers import EMAIL, business, link_of, onboarding, refused
from tests.pages.visitor import Visitor, site_map_of
from tests.world import STAFF

DEVELOPER = "developer@example.com"
KEPT = {
    "",
    "/checklist",
    "/keys",
    "/keys/{key_id:str}/revoke",
    "/keys/{key_id:str}/roll",
    "/settings",
    "/team",
    "/team/{member_id:str}/remove",
    "/tutorial",
}
"""The pages that an applicant has, too: none shows claims, links, onboardings or requests."""


async def test_a_revoked_partners_people_see_its_state_and_no_customers(world):
    """Neither pages nor files, though they see them until then; and they add nobody."""
    partner = await world.partner()
    partner_id, commands = partner.partner_id, world.service.partners
    entity_id = await partner.connected_entity()
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    await commands.add_member(partner_id, DEVELOPER, STAFF)
    await commands.add_member(partner_id, "colleague@example.com", STAFF)
    visitor = await Visitor(world).sign_in(DEVELOPER)
    known = await commands.look(partner_id)
    values = {"partner_id": partner_id, "claim_id": claim_id, "entity_id": entity_id}
    values |= {"key_id": next(iter(known.keys)), "member_id": next(iter(known.members))}

    async def opened():
        """Return the status and the text of each page of the console, by its path."""
        answers = {}
        for page in site_map_of(world.service).pages:
            if page.method == "GET" and page.path.startswith(CONSOLE):
                path = re.sub(r"\{(\w+):str\}", lambda found: values.get(found[1], "x"), page.path)
                answer = await visitor.get(path, params={"mode": "live"})
                answers[page.path.removeprefix(CONSOLE)] = (answer.status_code, answer.text)
        return answers

    before = await opened()
    assert {path for path, (status, _) in before.items() if status == 403} == set()
    assert claim_id in before["/claims"][1]
    await commands.revoke(partner_id, STAFF)
    after = await opened()
    assert {path for path, (status, _) in after.items() if status == 200} == KEPT
    assert {status for path, (status, _) in after.items() if path not in KEPT} == {403}
    for shown in (claim_id, entity_id, "colleague@example.com"):
        assert [path for path, (_, text) in after.items() if shown in text] == []
    assert f'href="/console/{partner_id}/claims"' not in after[""][1]
    added = await visitor.post(f"/console/{partner_id}/team", email="friend@example.com")
    assert added.status_code == 403


async def test_customers_and_the_team_see_that_a_partner_is_revoked(world):
    """Nobody is led to giving it an entity id, or told that it is connected."""
    partner = await world.partner()
    partner_id, entity_id = partner.partner_id, await business(world)
    await partner.connect(entity_id)
    await world.service.staff.add("team@example.com", STAFF)
    visitor, staff = [await Visitor(world).sign_in(one) for one in (EMAIL, "team@example.com")]
    links = {
        await link_of(partner): "connect_token_invalid",
        await onboarding(world, partner): "magic_link_invalid",
    }
    opened = {"answer": "approve", "entity_id": entity_id, "company_name": "New"}
    own = f"/account/{entity_id}/{partner_id}"
    pages = [(visitor, "/account"), (visitor, own), (staff, f"/backoffice/entities/{entity_id}")]

    for path in ("/account", own):
        assert f"{own}/disconnect" in (await visitor.get(path)).text
    assert "Those it creates" in (await visitor.get(own)).text

    async def is_shown(word):
        return [word in (await one.get(path)).text for one, path in pages]

    for revoked in (False, True):
        assert await is_shown("revoked") == [revoked] * 3
        connected = await visitor.get(f"/connected/{entity_id}/{partner_id}")
        assert connected.status_code == (303 if revoked else 200)
        assert connected.headers.get("location") == (own if revoked else None)
        await world.service.partners.revoke(partner_id, STAFF)
    assert not any(await is_shown(">connected<"))
    for path, code in links.items():
        for answer in (await visitor.get(path), await visitor.post(path, **opened)):
            refused(answer, 400, code)
            assert "There is nothing for you to do" in answer.text
            assert "Ask the partner" not in answer.text
        refused(await visitor.get(f"{path}x"), 400, code)
    for path in ("/account", own):
        assert f"{own}/disconnect" not in (await visitor.get(path)).text
    assert "Those it creates" not in (await visitor.get(own)).text
    assert "Connected since" not in (await visitor.get(own)).text
