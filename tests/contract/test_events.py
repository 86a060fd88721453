"""`GET /events`: ours. What happened, in the ledger's order, to its partner alone."""

import pytest

from tests.contract.event_feed import followed
from tests.world import STAFF

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENVELOPE = {"specversion": "1.0", "datacontenttype": "application/json"}


async def test_a_claims_life_is_told_in_the_logs_order(shared):
    """Connected by a link, created, moved twice; each once, with ids, stages and references."""
    partner = await shared.partner()
    entity_id = await partner.connected_entity()
    made = await partner.claim(entity_id, "case-7", partner_user_id="user-7")
    claim_id = made.json()["claim_id"]
    claims = shared.service.modes["live"].claims
    for stage in ("negotiation", "settled"):
        await claims.move(claim_id, stage, STAFF)

    found = await followed(partner, 5)
    positions = [int(one["sequence"]) for one in found]
    assert positions == sorted(set(positions))
    assert len({one["id"] for one in found}) == 5
    assert {one["type"] for one in found[:2]} == {"entity.connected", "connect_link.redeemed"}
    link_id = found[0]["data"]["link_id"]
    assert link_id.startswith("lnk_")
    for one in found[:2]:
        assert one["subject"] == one["data"]["link_id"] == link_id
        assert one["data"]["partner_user_id"] == "u"
    created, *moved = found[2:]
    about = {"claim_id": claim_id, "entity_id": entity_id}
    about |= {"partner_claim_id": "case-7", "partner_user_id": "user-7"}
    nothing = dict.fromkeys(("document_id", "onboarding_id", "link_id"))
    assert created.items() >= (ENVELOPE | {"type": "claim.created", "subject": claim_id}).items()
    assert created["source"] == "https://api.example.com/v1"
    assert created["data"] == about | nothing | {"stage": "triage", "previous_stage": None}
    assert [one["type"] for one in moved] == ["claim.stage_changed"] * 2
    assert [(one["data"]["previous_stage"], one["data"]["stage"]) for one in moved] == [
        ("triage", "negotiation"),
        ("negotiation", "settled"),
    ]
