"""`POST /onboardings` and finishing one: contract 2.1, 2.2, 4.1 and their readings."""

import asyncio
import json
import re
import socket
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from service.core.errors import Refusal
from service.facts.onboardings import (
    OnboardingCompleted,
    OnboardingReplayMismatched,
    OnboardingStarted,
    onboarding_stream,
)
from service.ledger.service_keys import token_hash
from service.onboardings.commands import PURPOSE
from tests.contract.events import events_of, execute
from tests.contract.refusals import refused
from tests.patience import eventually
from tests.world import STAFF

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.followed]


def body(reference="u1", email="owner@example.com", **more):
    """Return a small valid onboarding."""
    return {"partner_user_id": reference, "company_name": "New", "user_email": email} | more


async def start(partner, *args, mode="live", **more):
    """Start an onboarding."""
    return await partner.call("POST", "/onboardings", mode=mode, json=body(*args, **more))


async def with_link(world, **settings):
    """Return a partner whose answers include the link."""
    partner = await world.partner()
    await world.service.partners.change_settings(
        partner.partner_id, STAFF, return_link=True, **settings
    )
    return partner


async def finish(world, answer, email=None):
    """Finish as the person would, who signs in; return (onboarding, entity, partner) ids."""
    token = answer.json()["magic_link_url"].rpartition("/")[2]
    email = email or json.loads(answer.request.content)["user_email"]
    visitor = (await world.service.secrets.get()).lookup_email(email)
    live = world.service.modes["live"].onboardings
    return await live.complete(token, "req_test", visitor=visitor)


async def refusal_of(awaitable):
    """Return the code that a command is refused with."""
    with pytest.raises(Refusal) as refusal:
        await awaitable
    return refusal.value.code


async def test_a_new_onboarding_is_201_and_a_replay_200(shared):
    """Contract 4.1: the original id, already_existed, and no link by default."""
    partner = await shared.partner()
    first = await start(partner, "u1", "first@example.com")
    again = await start(partner, "u1", "first@example.com")
    other = await start(partner, "U1", "first@example.com")

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 201)
    assert list(first.json()) == ["onboarding_id", "already_existed"]
    assert again.json() == first.json() | {"already_existed": True}
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["Idempotent-Payload-Match"] == "true"
    assert "Idempotent-Replayed" not in first.headers


async def test_the_link_is_returned_once_if_enabled(in_memory):
    """Contract 2.2: present, then null on a replay; omitted once switched off."""
    partner = await with_link(in_memory)
    first = await start(partner, "u1", "once@example.com")
    again = await start(partner, "u1", "once@example.com")
    await in_memory.service.partners.change_settings(partner.partner_id, STAFF, return_link=False)
    off = await start(partner, "u1", "once@example.com")

    assert list(first.json()) == ["onboarding_id", "already_existed", "magic_link_url"]
    assert first.json()["magic_link_url"].startswith("https://api.example.com/onboarding/")
    assert again.json()["magic_link_url"] is None
    assert "magic_link_url" not in off.json()
    assert first.headers["Cache-Control"] == "no-store"


async def test_another_body_is_recorded_once_and_changes_nothing(in_memory):
    """Mismatching replays are recorded as for claims."""
    partner = await in_memory.partner()
    first = await start(partner, "u1", "one@example.com")
    for name in ("x", "y", "x"):
        again = await start(partner, "u1", "one@example.com", user_name=name)
        assert again.headers["Idempotent-Payload-Match"] == "false"
    same = await start(partner, "u1", "one@example.com")

    assert same.headers["Idempotent-Payload-Match"] == "true"
    found = await events_of(in_memory, "live", OnboardingReplayMismatched)
    mine = [one for one in found if one.onboarding_id == first.json()["onboarding_id"]]
    assert len(mine) == 2


async def test_identical_requests_at_once_start_one(shared):
    """Sixteen at once: one 201, and one id."""
    partner = await shared.partner()
    answers = await asyncio.gather(*(start(partner, "u", "many@example.com") for _ in range(16)))

    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert len({answer.json()["onboarding_id"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("email", "number", "taken"),
    [
        ("Known.{}@Example.COM", None, True),
        ("other.{}@example.com", "ab {}", True),
        ("other.{}@example.com", " A B {} ", True),
        ("other.{}@example.com", "AC{}", False),
        ("known.{}@other.example.com", "", False),
    ],
)
async def test_an_established_business_is_422(in_memory, email, number, taken):
    """Readings: found by email address or company number, both normalised."""
    unique = uuid4().hex
    entities = in_memory.service.modes["live"].entities
    await entities.add("Known", f"known.{unique}@example.com", f"AB{unique}", STAFF)
    partner = await in_memory.partner()
    more = {} if number is None else {"company_number": number.format(unique.upper())}
    answer = await start(partner, "u1", email.format(unique), **more)

    if taken:
        refused(answer, "onboarding_unavailable")
        started = await events_of(in_memory, "live", OnboardingStarted)
        assert partner.partner_id not in {event.partner_id for event in started}
    else:
        assert answer.status_code == 201


async def test_of_two_onboardings_of_a_business_the_first_to_finish_wins(in_memory):
    """Readings: two may start for one business; the second to finish is refused."""
    one, two = await with_link(in_memory), await with_link(in_memory)
    first = await start(one, "u1", "same@example.com", company_number="S 1")
    second = await start(two, "u2", "SAME@example.com")
    third = await start(two, "u3", "third@example.com", company_number="s1")
    assert [answer.status_code for answer in (first, second, third)] == [201, 201, 201]
    await finish(in_memory, first)

    assert await refusal_of(finish(in_memory, second)) == "onboarding_unavailable"
    assert await refusal_of(finish(in_memory, third)) == "onboarding_unavailable"
    refused(await start(two, "u4", "same@example.com"), "onboarding_unavailable")


async def test_two_finishers_of_one_business_at_once_have_one_winner(shared):
    """Completion is decided under a lock on the business."""
    partners = [await with_link(shared) for _ in range(8)]
    starts = [await start(one, "u", "race@example.com") for one in partners]
    outcomes = await asyncio.gather(
        *(finish(shared, answer) for answer in starts), return_exceptions=True
    )

    codes = [one.code for one in outcomes if isinstance(one, Refusal)]
    assert codes == ["onboarding_unavailable"] * 7


async def test_finishing_connects_and_happens_once(in_memory):
    """Afterwards the partner can create claims, and a replay is still 200."""
    partner = await with_link(in_memory)
    started = await start(partner, "u1", "done@example.com")
    onboarding_id, entity, partner_id = await finish(in_memory, started)
    again = await start(partner, "u1", "done@example.com")

    assert (onboarding_id, partner_id) == (started.json()["onboarding_id"], partner.partner_id)
    assert await refusal_of(finish(in_memory, started)) == "magic_link_already_used"
    assert (again.status_code, again.json()["magic_link_url"]) == (200, None)
    assert (await partner.claim(entity)).status_code == 201
    await partner.disconnect(entity)
    refused(await start(partner, "u1", "done@example.com"), "partner_disconnected")


async def test_a_partner_cannot_finish_in_the_persons_place(in_memory):
    """Whoever has a returned link alone takes neither the address nor the number, and no entity.

    Not even as somebody else who is signed in; the person can finish as ever.
    """
    partner, other = await with_link(in_memory, suppress_email=True), await in_memory.partner()
    victim = {"email": "owner@victim.example.com", "company_number": "VICTIM 1"}
    answer = await start(partner, "u1", **victim)
    token = answer.json()["magic_link_url"].rpartition("/")[2]
    live = in_memory.service.modes["live"].onboardings
    assert await refusal_of(live.complete(token, "req_1")) == "onboarding_needs_sign_in"
    assert await refusal_of(live.look(token, None)) == "onboarding_needs_sign_in"
    foreign = finish(in_memory, answer, "partner@example.com")
    assert await refusal_of(foreign) == "onboarding_needs_sign_in"
    assert (
        await start(other, "u1", "free@example.com", company_number="victim1")
    ).status_code == 201

    onboarding_id, entity_id, _ = await finish(in_memory, answer, "Owner@Victim.Example.com")
    assert onboarding_id == answer.json()["onboarding_id"]
    assert (await partner.claim(entity_id)).status_code == 201
    assert await refusal_of(live.finished(token, None)) == "onboarding_needs_sign_in"
    refused(
        await start(other, "u2", "late@example.com", company_number="victim1"),
        "onboarding_unavailable",
    )


async def test_a_link_that_was_only_mailed_proves_the_mailbox(in_memory):
    """No signing in is needed; the ledger says so, and who finished: the person, or the team."""
    partner, live = await in_memory.partner(), in_memory.service.modes["live"]
    secrets = await in_memory.service.secrets.get()
    for actor in (None, STAFF.actor):
        answer = await start(partner, f"u-{actor}", f"mailed-{actor is None}@example.com")
        token = secrets.link_token(PURPOSE, answer.json()["onboarding_id"])
        _, entity_id, _ = await live.onboardings.complete(token, "req_1", actor=actor)
        stream = onboarding_stream("live", 0, partner.partner_id, f"u-{actor}")
        async with live.ledger.transaction() as transaction:
            completed = (await transaction.read(stream))[-1]
        assert isinstance(completed.event, OnboardingCompleted)
        assert completed.event.proved_by == "mailed_link"
        assert completed.meta.actor == (actor or f"customer:{entity_id}")


async def test_a_row_opens_no_other_onboarding(shared):
    """A link that somebody writes into a row shows and finishes nothing of its person's."""
    partner, live = await shared.partner(), shared.service.modes["live"].onboardings
    answer = await start(partner, "u1", "forged@example.com")
    statement = "update live.onboardings set magic_link_hash = $1 where onboarding_id = $2"
    given = (token_hash("ours"), answer.json()["onboarding_id"])
    await execute(shared, "live", statement, *given)
    assert await refusal_of(live.look("ours", None)) == "magic_link_invalid"
    assert await refusal_of(live.complete("ours", "req_1")) == "magic_link_invalid"


async def test_a_row_has_no_link_last_longer(shared):
    """A magic link ends when the event that started the onboarding says."""
    partner = await with_link(shared)
    answer = await start(partner, "u1", "longer@example.com")
    statement = "update live.onboardings set expires_at = now() + '1 year' where onboarding_id = $1"
    await execute(shared, "live", statement, answer.json()["onboarding_id"])
    assert await refusal_of(finish(shared, answer)) == "magic_link_invalid"


async def test_an_entity_is_not_connected_before_its_person_finished(in_memory):
    """Contract section 1: claims can be created only for a connected entity."""
    partner = await with_link(in_memory)
    await start(partner, "u1", "early@example.com")
    started = (await events_of(in_memory, "live", OnboardingStarted))[-1]

    refused(await partner.claim(started.entity_id), "entity_not_owned")


async def test_a_magic_link_lives_seven_days_by_the_databases_clock(shared):
    """An expired link is refused as expired, an unknown one as invalid."""
    partner = await with_link(shared)
    answer = await start(partner, "u1", "late@example.com")
    async with shared.service.modes["live"].ledger.database.reads.connection() as connection:
        row = await connection.fetchrow(
            "select extract(epoch from expires_at - clock_timestamp()) as seconds "
            "from live.onboardings where onboarding_id = $1",
            answer.json()["onboarding_id"],
        )
    assert 0 <= 7 * 86400 - row["seconds"] < 60
    await execute(
        shared,
        "live",
        "update live.onboardings set expires_at = now() where onboarding_id = $1",
        answer.json()["onboarding_id"],
    )

    assert await refusal_of(finish(shared, answer)) == "magic_link_expired"
    complete = shared.service.modes["live"].onboardings.complete
    assert await refusal_of(complete("x" * 43, "req_test")) == "magic_link_invalid"


async def test_test_mode_connects_at_once_and_its_link_leads_nowhere(in_memory):
    """Contract 2.2 and readings: the host is a placeholder; connected, but not finished."""
    partner = await with_link(in_memory)
    answer = await start(partner, "u1", "sandbox@example.com", mode="test")
    twin = await start(partner, "u2", "sandbox@example.com", mode="test")
    again = await start(partner, "u1", "sandbox@example.com", mode="test")
    found = await events_of(in_memory, "test", OnboardingStarted)
    started = next(one for one in found if one.partner_id == partner.partner_id)
    host = urlsplit(answer.json()["magic_link_url"]).hostname

    assert (answer.status_code, twin.status_code, again.status_code) == (201, 201, 200)
    assert again.json()["magic_link_url"] is None
    assert (await partner.claim(started.entity_id, mode="test")).status_code == 201
    assert host.endswith(".invalid")
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo(host, 443)
    assert (await start(partner, "u1", "sandbox@example.com")).status_code == 201


@pytest.mark.parametrize(
    "code", ["onboarding_unavailable", "internal_error", "service_unavailable"]
)
async def test_triggers_work_in_test_mode_only(in_memory, code):
    """Decision 14."""
    partner = await in_memory.partner()
    refused(await start(partner, f"trigger_{code}", "t@example.com", mode="test"), code)

    assert (await start(partner, f"trigger_{code}", "t@example.com")).status_code == 201


async def test_mail_goes_out_unless_suppressed_or_a_test_or_a_replay(shared):
    """Contract 4.1: one mail for each live start that asks for it."""
    loud, quiet = await shared.partner(), await shared.partner()
    await shared.service.partners.change_settings(quiet.partner_id, STAFF, suppress_email=True)
    await start(quiet, "u1", "quiet@mail.example.com")
    await start(loud, "u1", "test@mail.example.com", mode="test")
    for _ in range(3):
        await start(loud, "u1", "loud@mail.example.com")

    await start(loud, "u2", "last@mail.example.com")

    def mailed():
        texts = (path.read_text() for path in shared.mail_dir.glob("*.eml"))
        found = [re.search(r"(\w+)@mail\.example\.com", text) for text in texts]
        return sorted(match[1] for match in found if match)

    # Mails leave in the order of their events: what came before the last one has gone too.
    await eventually(lambda: "last" in mailed())
    assert mailed() == ["last", "loud"]


async def test_the_sandbox_has_an_entity_in_every_state(shared):
    """Decision 14: they belong to this partner alone."""
    partner, other = await shared.partner(), await shared.partner()
    ids = await partner.sandbox()
    connected = await partner.claim(ids.connected_entity_id, mode="test")

    assert connected.status_code == 201
    refused(await partner.claim(ids.disconnected_entity_id, mode="test"), "partner_disconnected")
    refused(await partner.claim(ids.unconnected_entity_id, mode="test"), "entity_not_owned")
    refused(await other.claim(ids.connected_entity_id, mode="test"), "entity_not_owned")
    listed = await partner.call(
        "GET", "/claims", mode="test", params={"entity_id": ids.disconnected_entity_id}
    )
    assert listed.json()["entity_disconnected"] is True
