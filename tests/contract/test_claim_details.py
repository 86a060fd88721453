"""`GET /claims/{claim_id}`: ours. A claim with its history, documents and invoices' total."""

import pytest

from service.core.errors import Refusal
from service.facts.claims import STAGES
from service.http.scalars import LIMITS
from tests.contract.events import execute
from tests.contract.refusals import refused
from tests.patience import eventually
from tests.tables import every_row
from tests.world import STAFF

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.followed]


async def shown(partner, claim_id, mode="live"):
    """Return a claim."""
    answer = await partner.call("GET", f"/claims/{claim_id}", mode=mode)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_claim_has_what_the_list_has_and_its_history(shared):
    """At once: the answer waits for no number. Times are those of the moves."""
    partner, entity_id = await shared.connected()
    made = await partner.claim(
        entity_id,
        partner_user_id="u1",
        partner_invoice_ids=["a"],
        invoices=[
            {"number": "1", "total_amount_for_invoice": "999999999999999.99"},
            {"number": "2", "total_amount_for_invoice": "0.02"},
            {"number": "3"},
        ],
    )
    claim_id = made.json()["claim_id"]
    claims = shared.service.modes["live"].claims
    for stage in ("negotiation", "triage", "settled"):
        await claims.move(claim_id, stage, STAFF)
    listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
    (item,) = listed.json()["claims"]

    found = await shown(partner, claim_id)
    history = found.pop("history")
    assert found.pop("invoices") == {"count": 3, "total": "1000000000000000.01"}
    assert found.pop("documents") == []
    assert found == item
    assert list(found) == list(item)
    stages = [one["stage"] for one in history]
    assert stages == ["triage", "negotiation", "triage", "settled"]
    times = [one["since"] for one in history]
    assert times == sorted(times)
    assert times[0] == item["created_at"]

    await partner.disconnect(entity_id)
    gone = await shown(partner, claim_id)
    assert gone["entity_disconnected"]
    assert gone["entity_disconnected_at"] is not None


async def test_a_claim_of_anybody_else_does_not_exist(shared):
    """Another partner's, the other mode's, an unknown one and what is no id: all alike."""
    partner, other = await shared.partner(), await shared.partner()
    entity_id = await partner.connected_entity()
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    answers = [
        await other.call("GET", f"/claims/{claim_id}"),
        await partner.call("GET", f"/claims/{claim_id}", mode="test"),
        await partner.call("GET", f"/claims/clm_{'0' * 26}"),
        await partner.call("GET", "/claims/x"),
        await partner.call("GET", f"/claims/{'%C3%BC' * 80}"),
        await partner.call("GET", f"/claims/{claim_id.upper()}"),
    ]
    assert len({answer.content for answer in answers}) == 1
    for answer in answers:
        refused(answer, "claim_not_found")


async def test_a_row_shows_no_other_claim(shared):
    """Whose a claim is follows from its event, not from a row that names its stream or partner."""
    partner, other = await shared.partner(), await shared.partner()
    entity_id = await partner.connected_entity()
    await other.connect(entity_id)
    ours = (await partner.claim(entity_id)).json()["claim_id"]
    theirs = (await other.claim(entity_id)).json()["claim_id"]
    swap = (
        "update live.claim_list set stream_id ="
        " (select stream_id from live.claim_list where claim_id = $1) where claim_id = $2"
    )
    await execute(shared, "live", swap, theirs, ours)
    refused(await partner.call("GET", f"/claims/{ours}"), "claim_not_found")
    claims = shared.service.modes["live"].claims
    for asked in (claims.show(ours), claims.move(ours, "settled", STAFF)):
        with pytest.raises(Refusal, match="claim_not_found"):
            await asked
    assert (await claims.show(theirs)).stage == STAGES[0]
    give = "update live.claim_list set partner_id = $1 where claim_id = $2"
    await execute(shared, "live", give, partner.partner_id, theirs)
    refused(await partner.call("GET", f"/claims/{theirs}"), "claim_not_found")


async def test_documents_have_their_names_and_what_became_of_them(documents):
    """One is what it says, one is not."""
    partner, entity_id = await documents.world.connected()
    refs = [
        await documents.uploaded(partner, entity_id, filename="good.pdf"),
        await documents.uploaded(partner, entity_id, filename="bad.pdf", content=b"<html>"),
    ]
    made = (await partner.claim(entity_id, document_refs=refs)).json()

    async def settled():
        found = (await shown(partner, made["claim_id"]))["documents"]
        return found[1]["status"] == "flagged" and found

    good, bad = await eventually(settled)
    assert [good["document_id"], bad["document_id"]] == made["document_ids"]
    assert (good["filename"], good["mime_type"], good["status"]) == (
        *("good.pdf", "application/pdf"),
        "linked",
    )
    assert (bad["filename"], bad["size"]) == ("bad.pdf", 6)


async def test_a_path_that_does_not_exist_says_which_do(shared):
    """Without a key, too; nothing of a request is repeated."""
    with every_row() as row:
        ids = ("a/b", "", "a%2Fb", "%2E%2E", "%63lm_1")  # those that are no part of a path
        paths = ("/v1/claim", "/v1/", "/v1/%6f", "/v1", *(f"/v1/claims/{one}" for one in ids))
        for path in paths:
            with row(path):
                message = refused(await shared.client.get(path), "not_found")["message"]
                for known in ("POST /v1/claims", "GET /v1/claims/{claim_id}", "GET /v1/events"):
                    assert known in message
                assert len(message) < LIMITS["text"] * 2
    other = await shared.client.get("/v2/claims")
    assert "/v1" not in refused(other, "not_found")["message"]
