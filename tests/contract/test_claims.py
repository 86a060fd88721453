"""`POST /claims`: contract 2.5, 2.6 and 4.4, and their readings."""

import asyncio

import pytest

from service.core.ids import new_id
from service.facts.claims import ClaimReplayMismatched
from tests.contract.events import events_of, execute
from tests.contract.refusals import refused
from tests.memory_ledger import memory_world
from tests.world import claim_body, settings_for, world_on

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = {"storage_path": "entities/e/x", "mime_type": "image/png", "filename": "a.png"}


async def test_a_new_claim_is_201_with_the_fields_of_the_contract(shared):
    """Contract 2.6: fields in its order, and no replay headers."""
    partner = await shared.partner()
    answer = await partner.claim(await partner.connected_entity(), message="unpaid")
    body = answer.json()

    assert answer.status_code == 201
    assert list(body) == ["claim_id", "message_id", "document_ids", "already_existed"]
    assert body["claim_id"].startswith("clm_")
    assert body["message_id"].startswith("msg_")
    assert (body["document_ids"], body["already_existed"]) == ([], False)
    assert not [name for name in answer.headers if name.startswith("idempotent")]


@pytest.mark.parametrize("more", [{}, {"message": ""}, {"document_refs": []}], ids=str)
async def test_no_first_message_without_text_or_documents(in_memory, more):
    """Contract 2.6: message_id is null."""
    partner = await in_memory.partner()
    answer = await partner.claim(await partner.connected_entity(), **more)

    assert (answer.status_code, answer.json()["message_id"]) == (201, None)


@pytest.mark.parametrize("text", [" ", "\n", "0", "😀"], ids=repr)
async def test_any_text_is_a_message(in_memory, text):
    """Only the empty string counts as no message: nothing is trimmed."""
    partner = await in_memory.partner()
    answer = await partner.claim(await partner.connected_entity(), message=text)

    assert answer.json()["message_id"] is not None


async def test_a_replay_is_200_with_nothing_new(shared):
    """Contract 4.4: same id, null message, no documents; the headers mark the replay."""
    partner, entity = await shared.connected()
    first = await partner.claim(entity, message="unpaid")
    again = await partner.claim(entity, message="unpaid")

    assert again.status_code == 200
    assert again.json() == {
        "claim_id": first.json()["claim_id"],
        "message_id": None,
        "document_ids": [],
        "already_existed": True,
    }
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["Idempotent-Payload-Match"] == "true"


async def test_bodies_that_decode_alike_match(in_memory):
    """Readings: member order, white space, escapes and unknown fields make no difference."""
    partner, entity = await in_memory.connected()
    body = claim_body(entity, "cäse")
    await partner.call("POST", "/claims", json=body)
    respelled = dict(reversed(body.items())) | {"unknown": 1}
    again = await partner.call("POST", "/claims", json=respelled)

    assert again.headers["Idempotent-Payload-Match"] == "true"


async def test_an_empty_field_and_an_absent_one_are_two_bodies(in_memory):
    """Though they mean the same to the claim; nor is a moment alike that is written otherwise."""
    partner, entity = await in_memory.connected()
    first = {"message": "", "contract_date": "2026-01-01T09:00:00Z"}
    await partner.claim(entity, **first)
    without = {"contract_date": first["contract_date"]}
    respelled = first | {"contract_date": "2026-01-01T10:00:00+01:00"}
    for body, matches in ((without, "false"), (respelled, "false"), (first, "true")):
        again = await partner.claim(entity, **body)
        assert again.headers["Idempotent-Payload-Match"] == matches


async def test_another_body_is_recorded_once_and_changes_nothing(in_memory):
    """200 with Payload-Match false; one event per distinct body; the state is unchanged."""
    partner, entity = await in_memory.connected()
    claim_id = (await partner.claim(entity, message="one")).json()["claim_id"]
    claims = in_memory.service.modes["live"].claims
    before = await claims.show(claim_id)
    for text in ("two", "three", "two", "three", "two"):
        again = await partner.claim(entity, message=text)
        assert (again.status_code, again.json()["claim_id"]) == (200, claim_id)
        assert again.headers["Idempotent-Payload-Match"] == "false"
    same = await partner.claim(entity, message="one")

    assert same.headers["Idempotent-Payload-Match"] == "true"
    assert before == await claims.show(claim_id)
    found = [
        event
        for event in await events_of(in_memory, "live", ClaimReplayMismatched)
        if event.claim_id == claim_id
    ]
    assert len({event.fingerprint for event in found}) == len(found) == 2


async def test_concurrent_mismatches_are_recorded_once(shared):
    """Sixteen concurrent replays with one other body: sixteen 200, one event."""
    partner, entity = await shared.connected()
    claim_id = (await partner.claim(entity)).json()["claim_id"]
    answers = await asyncio.gather(*(partner.claim(entity, message="x") for _ in range(16)))

    assert {answer.status_code for answer in answers} == {200}
    found = await events_of(shared, "live", ClaimReplayMismatched)
    assert len([event for event in found if event.claim_id == claim_id]) == 1


SPELLINGS = ("café", "cafe\u0301", "Café", "café ", " café", "café\u200b", "cafe", "c\u0430fé")


async def test_references_are_byte_exact(shared):
    """Readings: NFC, NFD, case, white space and look-alikes are different claims."""
    partner, entity = await shared.connected()
    answers = [await partner.claim(entity, reference) for reference in SPELLINGS]
    listed = await partner.call("GET", "/claims", params={"entity_id": entity})

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["claim_id"] for answer in answers}) == len(SPELLINGS)
    kept = [one["partner_claim_id"] for one in listed.json()["claims"]]
    assert list(reversed(SPELLINGS)) == kept


async def test_references_are_scoped_to_entity_and_partner(in_memory):
    """Contract 4.4: one reference can be used for several entities and by several partners."""
    one, two = await in_memory.partner(), await in_memory.partner()
    first, second = await one.connected_entity(), await one.connected_entity()
    await two.connect(first)
    answers = [await one.claim(first), await one.claim(second), await two.claim(first)]

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len({answer.json()["claim_id"] for answer in answers}) == 3


async def test_identical_requests_at_once_make_one_claim(shared):
    """64 at once give one 201 and sixty-three 200."""
    partner, entity = await shared.connected()
    answers = await asyncio.gather(*(partner.claim(entity, message="x") for _ in range(64)))

    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * 63 + [201]
    assert len({answer.json()["claim_id"] for answer in answers}) == 1
    assert len([one for one in answers if one.json()["message_id"]]) == 1


async def test_access_is_refused_in_the_order_of_the_design(shared):
    """Decision 10: entity exists, connected, not disconnected, replay, documents."""
    partner = await shared.partner()
    unconnected, entity = await shared.entity(), await partner.connected_entity()
    await partner.claim(entity)
    refs = {"document_refs": [DOCUMENT]}

    refused(await partner.claim("ent_none", **refs), "entity_not_found")
    refused(await partner.claim(unconnected, **refs), "entity_not_owned")
    assert (await partner.claim(entity, **refs)).status_code == 200, "a replay precedes documents"
    refused(await partner.claim(entity, "case-2", **refs), "document_path_invalid")
    await partner.disconnect(entity)
    refused(await partner.claim(entity, "case-2", **refs), "partner_disconnected")
    refused(await partner.claim(entity), "partner_disconnected")
    refused(await partner.claim("", **refs), "validation_failed")
    await partner.connect(entity)
    assert (await partner.claim(entity)).status_code == 200


async def test_validation_comes_before_the_entity(in_memory):
    """Decision 10: an unknown entity does not hide faults of the body."""
    partner = await in_memory.partner()
    answer = await partner.call("POST", "/claims", json={"entity_id": "ent_none", "invoices": []})

    refused(answer, "validation_failed")
    assert answer.json()["details"] == {
        "formErrors": [],
        "fieldErrors": {
            "partner_claim_id": ["required"],
            "defendant": ["required"],
            "invoices": ["must not be empty"],
        },
    }


@pytest.mark.in_process("has ids drawn that are taken")
async def test_a_taken_claim_id_is_a_conflict_that_a_retry_resolves(tmp_path):
    """Contract 7, claim_conflict: nothing is recorded, and a retry draws another id."""
    forced: list[str] = []

    def draw(prefix, moment):
        return forced.pop() if prefix == "clm" and forced else new_id(prefix, moment)

    world = memory_world(tmp_path, new_id=draw)
    partner, entity = await world.connected()
    taken = (await partner.claim(entity)).json()["claim_id"]
    forced.append(taken)
    refused(await partner.claim(entity, "case-2", message="x"), "claim_conflict")
    retried = await partner.claim(entity, "case-2", message="x")

    assert retried.status_code == 201
    assert retried.json()["claim_id"] != taken
    assert retried.json()["message_id"] is not None


async def test_a_row_gives_no_access(shared):
    """A connection is what its events say, not a row that somebody wrote or altered."""
    stranger, former = await shared.partner(), await shared.partner()
    entity_id = await former.connected_entity()
    made = await former.claim(entity_id, "made")
    await former.disconnect(entity_id)
    add = "insert into live.connections values ($1, $2, 1, now(), null)"
    await execute(shared, "live", add, stranger.partner_id, entity_id)
    again = "update live.connections set version = $2, disconnected_at = null where partner_id = $1"
    document = {"filename": "a.png", "mime_type": "image/png", "partner_claim_id": "made"}
    for one, code in ((stranger, "entity_not_owned"), (former, "partner_disconnected")):
        for version in (1, 2, 7):
            await execute(shared, "live", again, one.partner_id, version)
            refused(await one.claim(entity_id, "made"), code)
            refused(await one.claim(entity_id, "new"), code)
            body = document | {"entity_id": entity_id}
            refused(await one.call("POST", "/documents/upload-url", json=body), code)
    assert made.status_code == 201


@pytest.mark.in_process("has ids drawn that are taken")
async def test_a_taken_claim_id_affects_no_other_claim_of_its_batch(database_url, tmp_path):
    """Commands that share a transaction succeed or fail individually."""
    forced: list[str] = []

    def draw(prefix, moment):
        return forced.pop() if prefix == "clm" and forced else new_id(prefix, moment)

    settings = settings_for(database_url, tmp_path)
    async with world_on(settings, tmp_path, follow=False, new_id=draw) as world:
        partner, entity = await world.connected()
        forced.append((await partner.claim(entity)).json()["claim_id"])
        answers = await asyncio.gather(*(partner.claim(entity, f"n{i}") for i in range(40)))

        assert {answer.status_code for answer in answers} <= {201, 409}
        again = await asyncio.gather(*(partner.claim(entity, f"n{i}") for i in range(40)))
        assert len({answer.json()["claim_id"] for answer in again}) == 40


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("claim_conflict", 409),
        ("internal_error", 500),
        ("service_unavailable", 503),
        ("document_verification_failed", 503),
    ],
)
async def test_sandbox_triggers_reach_rare_errors(in_memory, code, status):
    """Decision 14: a reference is a trigger in test mode only."""
    partner = await in_memory.partner()
    entity = (await partner.sandbox()).connected_entity_id
    answer = await partner.claim(entity, f"trigger_{code}", mode="test")
    live = await partner.claim(await partner.connected_entity(), f"trigger_{code}")

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("Retry-After" in answer.headers) is (status == 503)
    assert answer.json()["message"] == "Internal error" or status != 500
    assert live.status_code == 201


@pytest.mark.in_process("reads the metrics of the process that answers")
async def test_what_the_sandbox_was_asked_for_is_counted_apart(in_memory):
    """By codes that no alert and no objective watches."""
    partner = await in_memory.partner()
    entity = (await partner.sandbox()).connected_entity_id
    for code in ("internal_error", "service_unavailable"):
        await partner.claim(entity, f"trigger_{code}", mode="test")
        counted = str(list(in_memory.metrics.registry.collect()))
        assert f"'code': 'trigger_{code}'" in counted
        assert f"'code': '{code}'" not in counted
