import pytest


@pytest.mark.followed
async def test_a_claim_is_created_replayed_and_listed(world):
    """A partner creates a claim, repeats the request, and finds one claim in the list."""
    partner, entity_id = await world.connected()
    first = await partner.claim(entity_id, message="unpaid")
    again = await partner.claim(entity_id, message="unpaid")
    listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
    assert (first.status_code, again.status_code, listed.status_code) == (201, 200, 200)
    assert again.json()["claim_id"] == first.json()["claim_id"]
    assert [one["claim_id"] for one in listed.json()["claims"]] == [first.json()["claim_id"]]
