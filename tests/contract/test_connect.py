"""`POST /connect-requests` and approving a link: contract 2.3, 3, 4.2 and their readings."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

import pytest

from service.core.errors import Refusal
from service.facts.connections import ConnectLinkIssued, EntityConnected
from service.ledger.service_keys import token_hash
from tests.contract.events import events_of, execute
from tests.contract.refusals import refused
from tests.world import STAFF

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def request(partner, mode="live", **more):
    """Request a connect link."""
    body = {"partner_user_id": "u1"} | more
    return await partner.call("POST", "/connect-requests", mode=mode, json=body)


async def link(partner, **more):
    """Return the token of a new link."""
    return (await request(partner, **more)).json()["connect_url"].rpartition("/")[2]


async def approve(world, token, entity):
    """Approve as the customer would; return `linked` or the code of the refusal."""
    try:
        await world.service.modes["live"].connections.approve(token, entity, STAFF)
    except Refusal as refusal:
        return refusal.code
    return "linked"


async def test_each_call_mints_a_fresh_link_in_live(shared):
    """Contract 4.2: 201, not idempotent; the fields of 2.3 in their order."""
    partner = await shared.partner()
    answers = [await request(partner, label="Spring") for _ in range(3)]

    for answer in answers:
        assert (answer.status_code, list(answer.json())) == (201, ["connect_url", "expires_at"])
        assert answer.json()["connect_url"].startswith("https://api.example.com/connect/")
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Idempotent-Replayed" not in answer.headers
    assert len({answer.json()["connect_url"] for answer in answers}) == 3


async def test_a_link_expires_an_hour_after_issue_by_the_databases_clock(shared):
    """Contract 8: one hour."""
    partner = await shared.partner()
    reads = shared.service.modes["live"].ledger.database.reads

    async def clock():
        async with reads.connection() as connection:
            return await connection.fetchval("select clock_timestamp()")

    before = await clock()
    text = (await request(partner)).json()["expires_at"]
    after = await clock()
    at = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)

    assert len(text) == len("2026-01-01T00:00:00.000Z")
    # In milliseconds, the rest is cut off.
    assert before - timedelta(milliseconds=1) <= at - timedelta(hours=1) <= after


async def test_only_a_hash_of_the_token_is_kept(in_memory):
    """Decision 15."""
    partner = await in_memory.partner()
    token = await link(partner, label="Spring")
    issued = (await events_of(in_memory, "live", ConnectLinkIssued))[-1]

    assert len(issued.token_hash) == 32
    assert token.encode() not in issued.token_hash
    assert (issued.label, issued.partner_user_id) == ("Spring", "u1")


async def test_in_test_mode_the_link_is_always_the_same_and_inert(shared):
    """Contract 2.3: deterministic, not redeemable, expires_at null."""
    partner, other = await shared.partner(), await shared.partner()
    answers = [await request(partner, mode="test") for _ in range(2)]
    another = await request(partner, mode="test", partner_user_id="u2")
    others = await request(other, mode="test")
    token = answers[0].json()["connect_url"].rpartition("/")[2]
    entity = await shared.entity()

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["expires_at"] is None
    urls = {answer.json()["connect_url"] for answer in (answers[0], another, others)}
    assert len(urls) == 3
    assert await approve(shared, token, entity) == "connect_token_invalid"
    with pytest.raises(Refusal) as refusal:
        await shared.service.modes["test"].connections.approve(token, entity, STAFF)
    assert refusal.value.code == "connect_token_invalid"


async def test_an_approval_connects(in_memory):
    """Contract 3: claims work only after approval; a second approval fails."""
    partner = await in_memory.partner()
    entity, token = await in_memory.entity(), await link(partner)
    refused(await partner.claim(entity), "entity_not_owned")

    assert await approve(in_memory, token, entity) == "linked"
    assert (await partner.claim(entity)).status_code == 201
    assert await approve(in_memory, token, entity) == "connect_token_already_redeemed"
    assert (
        await approve(in_memory, token, await in_memory.entity())
        == "connect_token_already_redeemed"
    )


async def expired(world, partner, token):
    """Let the link's hour pass."""
    statement = "update live.connect_links set expires_at = now() where partner_id = $1"
    await execute(world, "live", statement, partner.partner_id)
    return token


async def declined(world, _partner, token):
    """Decline the link."""
    await world.service.modes["live"].connections.decline(token, STAFF)
    return token


async def of_a_revoked_partner(world, partner, token):
    """Revoke the partner's access."""
    await world.service.partners.revoke(partner.partner_id, STAFF)
    return token


async def of_another_partner(world, partner, token):
    """Write another partner into the link's row."""
    other = (await world.partner()).partner_id
    statement = "update live.connect_links set partner_id = $1 where partner_id = $2"
    await execute(world, "live", statement, other, partner.partner_id)
    return token


async def of_a_longer_life(world, partner, token):
    """Write a later expiry into the link's row."""
    statement = "update live.connect_links set expires_at = now() + '1 day' where partner_id = $1"
    await execute(world, "live", statement, partner.partner_id)
    return token


async def of_another_token(world, partner, _token):
    """Write the hash of a token that was never issued into the link's row, and return it."""
    token = secrets.token_hex()
    statement = "update live.connect_links set token_hash = $1 where partner_id = $2"
    await execute(world, "live", statement, token_hash(token), partner.partner_id)
    return token


async def altered(_world, _partner, token):
    """Return a token that was never issued."""
    return token.swapcase()


async def empty(_world, _partner, _token):
    """Return no token."""
    return ""


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (expired, "connect_token_expired"),
        (declined, "connect_token_invalid"),
        (of_a_revoked_partner, "connect_token_invalid"),
        (of_another_partner, "connect_token_invalid"),
        (of_a_longer_life, "connect_token_invalid"),
        (of_another_token, "connect_token_invalid"),
        (altered, "connect_token_invalid"),
        (empty, "connect_token_invalid"),
    ],
)
async def test_unusable_links_connect_nothing(shared, what, code):
    """Contract 3 and 7, and the readings: each is refused with its code."""
    partner = await shared.partner()
    entity = await shared.entity()
    token = await what(shared, partner, await link(partner))

    assert await approve(shared, token, entity) == code
    connected = await events_of(shared, "live", EntityConnected)
    assert entity not in {event.entity_id for event in connected}


@pytest.mark.parametrize("alter", [of_another_partner, of_a_longer_life, of_another_token])
async def test_a_row_has_no_other_links_answer(shared, alter):
    """What became of a link is shown to whoever has it: an altered row has no other's shown."""
    partner, entity = await shared.partner(), await shared.entity()
    commands, token = shared.service.modes["live"].connections, await link(partner)
    assert await commands.answer(token) is None
    await approve(shared, token, entity)
    assert (await commands.answer(token)).event.entity_id == entity
    assert await commands.answer(await alter(shared, partner, token)) is None


async def test_an_unknown_entity_leaves_the_link_usable(in_memory):
    """A refusal writes nothing."""
    partner = await in_memory.partner()
    token = await link(partner)

    assert await approve(in_memory, token, "ent_none") == "entity_not_found"
    assert await approve(in_memory, token, await in_memory.entity()) == "linked"


async def test_an_entity_is_linked_once_at_a_time(in_memory):
    """Contract 7: entity_already_linked; after disconnection a new link connects again."""
    partner, entity = await in_memory.connected()
    second = await link(partner)

    assert await approve(in_memory, second, entity) == "entity_already_linked"
    await partner.disconnect(entity)
    refused(await partner.claim(entity), "partner_disconnected")
    assert await approve(in_memory, second, entity) == "linked"
    assert (await partner.claim(entity)).status_code == 201


async def test_of_64_approvals_at_once_one_wins(shared):
    """One link connects one entity, whichever entities approve it."""
    partner = await shared.partner()
    entities = [await shared.entity() for _ in range(8)]
    token = await link(partner)
    outcomes = await asyncio.gather(*(approve(shared, token, entities[n % 8]) for n in range(64)))

    assert sorted(outcomes) == ["connect_token_already_redeemed"] * 63 + ["linked"]
    connected = await events_of(shared, "live", EntityConnected)
    assert len([one for one in connected if one.partner_id == partner.partner_id]) == 1
