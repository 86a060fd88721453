"""`GET /events`: ours. What happened, in the ledger's order, to its partner alone."""

import asyncio
import json
from functools import partial

import pytest

from service.events.cursor import cursor
from service.events.wire import LIMIT_MAX
from service.facts.claims import ClaimCreated
from service.http.scalars import LIMITS
from service.onboardings.commands import PURPOSE
from service.sandbox.commands import SandboxCommands
from tests.contract.event_feed import events, followed
from tests.contract.refusals import fields, refused
from tests.tables import every_row
from tests.world import STAFF

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.followed]

ENVELOPE = {"specversion": "1.0", "datacontenttype": "application/json"}


async def test_a_claims_life_is_told_in_the_logs_order(shared):
    """Connected by a link, created, moved twice; each once, with ids, stages and references."""
    partner, entity_id = await shared.connected()
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


async def test_what_brought_an_entity_stands_for_its_id_until_it_is_used(shared):
    """Contract section 1: a claim for the entity is the use; disconnecting says the same."""
    partner = await shared.partner()
    live = shared.service.modes["live"]
    body = {"partner_user_id": "user-1", "company_name": "New", "user_email": "e1@example.com"}
    onboarding_id = (await partner.call("POST", "/onboardings", json=body)).json()["onboarding_id"]
    secrets = await shared.service.secrets.get()
    token, visitor = (
        secrets.link_token(PURPOSE, onboarding_id),
        secrets.lookup_email("e1@example.com"),
    )
    await live.onboardings.complete(token, "req_1", visitor=visitor)
    entity_id = (await live.onboarding_list.by_id(onboarding_id))["entity_id"]
    await partner.disconnect(entity_id)

    *brought, gone = await followed(partner, 3)
    assert {one["type"] for one in brought} == {"onboarding.completed", "entity.connected"}
    assert gone["type"] == "entity.disconnected"
    named = {"onboarding_id": onboarding_id, "partner_user_id": "user-1"}
    for one in (*brought, gone):
        assert one["subject"] == onboarding_id
        assert {name: text for name, text in one["data"].items() if text is not None} == named

    await partner.connect(entity_id)
    await partner.claim(entity_id)
    known = await followed(partner, 6)
    assert [one["id"] for one in known[:3]] == [one["id"] for one in (*brought, gone)]
    assert {one["data"]["entity_id"] for one in known} == {entity_id}


async def test_what_ends_without_an_entity_and_what_the_team_connects(shared):
    """A declined link has no entity; the team's connection was brought by nobody."""
    partner = await shared.partner()
    connections = shared.service.modes["live"].connections
    answer = await partner.call("POST", "/connect-requests", json={"partner_user_id": "user-2"})
    await connections.decline(answer.json()["connect_url"].rpartition("/")[2], STAFF)
    await connections.connect_by_staff(await shared.entity(), partner.partner_id, STAFF)

    declined, connected = await followed(partner, 2)
    assert declined["type"] == "connect_link.declined"
    assert declined["data"]["partner_user_id"] == "user-2"
    assert connected["type"] == "entity.connected"
    assert "subject" not in connected
    assert set(connected["data"].values()) == {None}


async def test_what_brought_an_entity_is_said_whoever_connects_it_again(shared):
    """The latest onboarding or link: the team's connections have none of their own."""
    partner, live = await shared.partner(), shared.service.modes["live"]
    entity_id = await shared.entity()
    for by_link in (False, True, False, False, True):
        if by_link:
            await partner.connect(entity_id)
        else:
            await live.connections.connect_by_staff(entity_id, partner.partner_id, STAFF)
        await partner.disconnect(entity_id)

    found = await followed(partner, 12)
    redeemed = [one["subject"] for one in found if one["type"] == "connect_link.redeemed"]
    subjects = [one.get("subject") for one in found if one["type"].startswith("entity.")]
    first, second = redeemed
    assert subjects == [*[None] * 2, *[first] * 6, *[second] * 2]
    for one in found:
        assert one["data"]["link_id"] == one.get("subject")
        assert one["data"]["partner_user_id"] == ("u" if "subject" in one else None)
        assert one["data"]["entity_id"] is None
    about = partial(live.partner_events.about, partner.partner_id)
    places = [int(one["sequence"]) for one in found]
    subjects = {int(one["sequence"]): one.get("subject") for one in found}
    assert await about(places) == subjects
    assert await about([0, 2**62]) == {}

    await partner.connect(entity_id)
    await partner.claim(entity_id)
    used = {place: subject or entity_id for place, subject in subjects.items()}
    assert await about(places) == used
    for one in (await followed(partner, 15))[:2]:
        assert (one.get("subject"), one["data"]["entity_id"]) == (None, entity_id)
    other = await shared.partner()
    assert await live.partner_events.about(other.partner_id, places) == {}


async def test_what_brought_an_entity_is_said_in_the_sandbox_too(shared):
    """A business that an onboarding brought, disconnected and connected in the console."""
    partner = await shared.partner()
    body = {"partner_user_id": "user-3", "company_name": "New", "user_email": "e3@example.com"}
    answer = await partner.call("POST", "/onboardings", json=body, mode="test")
    onboarding_id = answer.json()["onboarding_id"]
    row = await shared.service.modes["test"].onboarding_list.by_id(onboarding_id)
    service = shared.service
    sandbox = SandboxCommands(service.modes["test"].ledger, service.partners, service.sandbox)
    for deed in (sandbox.disconnect, sandbox.connect, sandbox.disconnect):
        await deed(partner.partner_id, 0, row["entity_id"], STAFF)
    await partner.sandbox()

    found = await followed(partner, 4 + 3, mode="test")  # three of fixtures
    named = {"onboarding_id": onboarding_id, "partner_user_id": "user-3"}
    told = [one for one in found if any(one["data"].values())]
    assert [one["type"] for one in told] == ["entity.connected", "entity.disconnected"] * 2
    for one in told:
        assert one["subject"] == onboarding_id
        assert {name: text for name, text in one["data"].items() if text is not None} == named


async def test_partners_and_modes_are_told_of_their_own_alone(shared):
    """Two partners of one entity, and each one's test mode: no event is in two lists."""
    one, other = await shared.partner(), await shared.partner()
    entity_id = await one.connected_entity()
    await other.connect(entity_id)
    fixture = (await one.sandbox()).connected_entity_id
    ids = set[str]()
    for partner, mode, where in (
        (one, "live", entity_id),
        (one, "test", fixture),
        (other, "live", entity_id),
    ):
        claim_id = (await partner.claim(where, mode=mode)).json()["claim_id"]
        found = await followed(partner, 4 if mode == "test" else 3, mode=mode)
        told = [event["data"]["claim_id"] for event in found if event["type"] == "claim.created"]
        assert told == [claim_id]
        assert {event["source"].endswith("?mode=test") for event in found} == {mode == "test"}
        assert ids.isdisjoint(event["id"] for event in found)
        ids |= {event["id"] for event in found}


async def test_a_cursor_leads_through_pages_and_on_from_the_last(shared):
    """Each event once, whatever the pages' size; an empty page gives the cursor back."""
    partner = await shared.partner()
    beginning = (await events(partner))["next_cursor"]
    entity_id = await partner.connected_entity()
    for number in range(5):
        await partner.claim(entity_id, f"case-{number}")
    whole = await followed(partner, 7)
    assert (await events(partner, beginning))["events"] == whole
    for limit, size in ((3, 3), (0, 1), (-5, 1), (1000, 7)):
        page = await events(partner, limit=limit)
        assert page["events"] == whole[:size]
        rest = await events(partner, page["next_cursor"])
        assert rest["events"] == whole[size:]
    last = (await events(partner))["next_cursor"]
    assert await events(partner, last) == {"events": [], "next_cursor": last}


async def test_readers_beside_writers_miss_nothing(shared):
    """Events commit in one order and are numbered in another; small pages are read meanwhile."""
    partner = await shared.partner()
    entities = [await partner.connected_entity() for _ in range(2)]
    before = [one["id"] for one in await followed(partner, 4)]

    async def write(entity_id, writer):
        return [
            (await partner.claim(entity_id, f"{writer}-{number}")).json()["claim_id"]
            for number in range(12)
        ]

    writing = asyncio.gather(*(write(one, nr) for nr in range(3) for one in entities))
    found = await followed(partner, 4 + 6 * 12, limit=3)
    made = [claim_id for each in await writing for claim_id in each]
    assert sorted(one["subject"] for one in found[4:]) == sorted(made)
    assert [one["id"] for one in found[:4]] == before
    positions = [int(one["sequence"]) for one in found]
    assert positions == sorted(set(positions))


@pytest.mark.in_process("makes the projection of this process fail")
async def test_an_event_that_is_set_aside_is_waited_for_by_its_partner_alone(shared, monkeypatch):
    """Told later, it would stand behind cursors that have passed it."""
    partner, other = await shared.partner(), await shared.partner()
    entity_id = await partner.connected_entity()
    await other.connect(entity_id)
    projection = shared.service.parked_by("live", "partner_events")
    project = projection.projector.project

    def failing(recorded):
        if isinstance(recorded.event, ClaimCreated) and recorded.event.partner_claim_id == "bad":
            raise ZeroDivisionError
        return project(recorded)

    monkeypatch.setattr(projection.projector, "project", failing)
    bad = (await partner.claim(entity_id, "bad")).json()["claim_id"]
    await shared.service.modes["live"].claims.move(bad, "settled", STAFF)
    good = (await partner.claim(entity_id, "good")).json()["claim_id"]
    await other.claim(entity_id, "good")

    assert (await followed(other, 3))[2]["type"] == "claim.created"  # it comes last in the log
    page = await events(partner)
    assert len(page["events"]) == 2
    monkeypatch.undo()
    assert await projection.retry(shared.service.modes["live"].ledger) == 2
    rest = (await events(partner, page["next_cursor"]))["events"]
    assert [one["subject"] for one in rest] == [bad, bad, good]


async def test_a_cursor_of_a_lost_future_is_refused(shared):
    """After a restore the log has no event there, or another one: the message says what to do."""
    partner, other = await shared.partner(), await shared.partner()
    entity_id = await partner.connected_entity()
    await partner.claim(entity_id)
    *_, last = await followed(partner, 3)
    place = int(last["sequence"])
    theirs = (await events(partner))["next_cursor"]
    assert (await events(partner, theirs))["events"] == []
    lost = [
        cursor(partner.partner_id, 10**9, b"x" * 32),  # beyond the end of the log
        cursor(partner.partner_id, place, b"x" * 32),  # where another event was
        cursor(partner.partner_id, place, None),
    ]
    for text in lost:
        answer = await partner.call("GET", "/events", params={"after": text})
        (message,) = refused(answer, "validation_failed")["details"]["fieldErrors"]["after"]
        assert "restored to an earlier state" in message
        assert "read again without `after`" in message
    answer = await other.call("GET", "/events", params={"after": theirs})
    assert fields(answer) == ["after"]


async def test_what_is_no_cursor_is_refused(shared):
    """With the field's name."""
    partner = await shared.partner()
    with every_row() as row:
        for text in ("", "x", "evc_", "evc_AAAA", "evc_" + "_" * 32, "clm_1", "é", "A" * 256):
            with row(text):
                answer = await partner.call("GET", "/events", params={"after": text})
                assert fields(answer) == ["after"]


async def test_the_largest_page_is_bounded(shared):
    """An event has two references of the partner's: the longest ones make less than a mebibyte."""
    partner, entity_id = await shared.connected()
    longest = "\x01" * LIMITS["text"]  # six bytes each in JSON
    await partner.claim(entity_id, longest, partner_user_id=longest)
    *_, created = await followed(partner, 3)
    assert len(json.dumps(created)) * LIMIT_MAX < 2**20
