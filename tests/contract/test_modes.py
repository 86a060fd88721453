"""Live and test mode have the same shapes and share nothing (contract section 1)."""

import pytest

from service.facts.claims import ClaimCreated
from tests.contract.events import events_of
from tests.contract.refusals import refused

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def in_both(shared):
    """Return a partner with a live and a test entity."""
    partner, live = await shared.connected()
    return partner, live, (await partner.sandbox()).connected_entity_id


async def test_the_other_modes_entity_does_not_exist(shared):
    """Readings: 404 entity_not_found, for writes and lists alike; it names the mode of the key."""
    partner, live, test = await in_both(shared)
    for mode, entity in (("live", test), ("test", live)):
        made = await partner.claim(entity, mode=mode)
        listed = await partner.call("GET", "/claims", mode=mode, params={"entity_id": entity})
        for answer in (made, listed):
            assert f"in {mode} mode" in refused(answer, "entity_not_found")["message"]


async def test_references_are_separate_in_each_mode(shared):
    """Each mode has its own claim and lists only that."""
    partner, live, test = await in_both(shared)
    answers = [
        await partner.claim(live, "same", partner_user_id="u"),
        await partner.claim(test, "same", partner_user_id="u", mode="test"),
    ]
    ids = [answer.json()["claim_id"] for answer in answers]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert [list(answer.json()) for answer in answers] == [list(answers[0].json())] * 2
    for mode, entity, claim_id in (("live", live, ids[0]), ("test", test, ids[1])):
        query = {"entity_id": entity, "partner_user_id": "u"}
        listed = await partner.call("GET", "/claims", mode=mode, params=query)
        assert [one["claim_id"] for one in listed.json()["claims"]] == [claim_id]
        kept = {event.claim_id for event in await events_of(shared, mode, ClaimCreated)}
        assert kept.intersection(ids) == {claim_id}


async def test_onboardings_are_separate_in_each_mode(shared):
    """The same partner_user_id starts one in each mode."""
    partner = await shared.partner()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "m@example.com"}
    answers = [
        await partner.call("POST", "/onboardings", mode=m, json=body) for m in ("live", "test")
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert len({answer.json()["onboarding_id"] for answer in answers}) == 2
