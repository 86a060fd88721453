"""What the console's pages show of a partner's own: calls, keys, claims, links, usage."""

import html
import re

import pytest

from service.core.errors import Refusal, invalid
from service.facts.partners import ApiKeyIssued, partner_stream
from service.request_log.outcome import OUTCOME_BYTES_MAX, Outcome, outcome_of, read_outcome
from tests.pages.visitor import Visitor
from tests.world import STAFF, claim_body

DEVELOPER = "developer@example.com"


@pytest.fixture
async def developer(world):
    """Return a member of a partner's team, signed in, and the partner."""
    partner = await world.partner()
    await world.service.partners.add_member(partner.partner_id, DEVELOPER, STAFF)
    return await Visitor(world).sign_in(DEVELOPER), partner


async def shown(visitor, path, status=200):
    """Return a page's text without its tags."""
    answer = await visitor.get(path)
    assert answer.status_code == status, answer.text
    return text_of(answer.text)


def text_of(page):
    """Return what a page says."""
    bare = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", bare)))


async def test_a_call_says_what_was_wrong_and_what_a_repeat_met(world, developer):
    """Fields and messages of a 400, never a value; whether a repeat had the same body."""
    visitor, partner = developer
    entity_id = await partner.connected_entity()
    body = claim_body(entity_id, "case-1")
    wrong = body | {"partner_claim_id": 20260123, "invoices": [{"number": "secret-7\0"}]}
    calls = [
        await partner.call("POST", "/claims", json=one)
        for one in (wrong, body, body, body | {"message": "Another message."})
    ]
    assert [call.status_code for call in calls] == [400, 201, 200, 200]
    await world.observed.request_log.flush()
    path = f"/console/{partner.partner_id}/requests"
    refused, first, same, other = [
        await shown(visitor, f"{path}/{call.headers['x-request-id']}") for call in calls
    ]
    for name, messages in calls[0].json()["details"]["fieldErrors"].items():
        for message in (name, *messages):
            assert message in refused
    assert "20260123" not in refused
    assert "secret-7" not in refused
    assert "A repeat" not in first
    assert "with the same body" in same
    assert "with a different body" in other


def test_what_is_kept_of_a_refusal_is_bounded():
    """Whatever is wrong with a body; what is left out is counted, and a success keeps nothing."""
    refusal = Refusal(
        "validation_failed",
        field_errors={f"f{number}": ["ä" * 100] for number in range(99)},
        form_errors=["at most 100 faults are listed"],
    )
    stored = outcome_of({}, refusal)
    assert stored is not None
    assert len(stored.encode()) <= OUTCOME_BYTES_MAX
    kept = read_outcome(stored)
    assert len(kept.fields) + len(kept.form) + kept.more == 100
    assert len(kept.fields) >= 3
    assert outcome_of({}, Refusal("entity_not_found")) is None
    assert outcome_of({}, None) is None
    assert read_outcome(outcome_of({}, invalid("limit", "too large"))).fields == {
        "limit": ["too large"]
    }
    replayed = {b"idempotent-replayed": b"true"}
    assert read_outcome(outcome_of(replayed, None)) == Outcome(replayed=True)
    assert read_outcome(None) == Outcome()


async def test_keys_have_names(world, developer):
    """A name is shown wherever its key is, goes on to the next one, and is encrypted in the log."""
    visitor, partner = developer
    path = f"/console/{partner.partner_id}/keys"

    async def issued(name):
        page = (await visitor.get(path)).text
        drawn = {
            field: re.search(rf'name="{field}" value="([^"]*)"', page)[1]
            for field in ("key_id", "proof")
        }
        return await visitor.post(path, mode="test", name=name, **drawn), drawn["key_id"]

    for name in ("x" * 61, "a\u202eb"):
        answer, _ = await issued(name)
        assert answer.status_code == 400
        assert 'aria-invalid="true"' in answer.text
    answer, key_id = await issued("Payroll server")
    assert answer.status_code == 200
    unnamed, _ = await issued("")
    assert unnamed.status_code == 200
    rolled = await visitor.post(f"{path}/{key_id}/roll", overlap="1h")
    assert rolled.status_code == 200
    listed = await shown(visitor, path)
    assert listed.count("Payroll server") == 2
    assert "Payroll server" in await shown(visitor, f"{path}/{key_id}/revoke")
    stored = await world.service.accounts.read(partner_stream(partner.partner_id))
    names = [one.event.name for one in stored if isinstance(one.event, ApiKeyIssued)]
    assert names == [None, None, "Payroll server", None, "Payroll server"]
    async with world.service.accounts.database.reads.connection() as connection:
        rows = await connection.fetch("select state from accounts.events")
    assert all(b"Payroll" not in row["state"] for row in rows)
