"""Passkeys: what asks for one, what is accepted as one, and recovery; without a browser."""

import base64
import json
import re
from datetime import timedelta
from typing import Any

import pytest

from service.facts.passkeys import PasskeyAdded, PasskeysReset, passkeys_stream
from service.pages.visit import form_token
from service.people.ceremonies import Ceremonies
from tests.authenticator import PRESENT, Authenticator
from tests.pages.signing_in import asked
from tests.pages.visitor import Visitor, ceremony
from tests.world import PUBLIC_URL, STAFF

HOST = "api.example.com"
MEMBER, TEAM = "dev@example.com", "team@example.com"


def authenticator(**given):
    """Return a new authenticator of our origin, or of what is given."""
    return Authenticator(**{"origin": PUBLIC_URL, "host": HOST} | given)


async def by_link(world, email):
    """Return a visitor who signed in by the link in a mail."""
    return await Visitor(world).sign_in(email, by_passkey=False)


async def enrolled(visitor, key, path="/security/passkey"):
    """Add a passkey; return the answer."""
    options, challenge = await ceremony(visitor, path)
    return await visitor.post(
        "/security/passkey", challenge=challenge, credential=key.create(options), next="/account"
    )


async def proved(visitor, key, next_path="/account"):
    """Prove with a passkey who somebody is; return the answer."""
    options, challenge = await ceremony(visitor, "/proof")
    return await visitor.post(
        "/proof", challenge=challenge, credential=key.get(options), next=next_path
    )


async def recorded(world, person_id):
    """Return the topics and actors of the events about a person's passkeys."""
    async with world.service.accounts.transaction() as transaction:
        past = await transaction.read(passkeys_stream(person_id))
    return [(type(one.event), one.meta.actor) for one in past]


async def test_the_back_office_needs_a_passkey(world):
    """The first visit adds one; later ones ask for it; a link alone opens nothing."""
    await world.service.staff.add(TEAM, STAFF)
    visitor, key = await by_link(world, TEAM), authenticator()
    led = await visitor.get("/backoffice/partners")
    assert led.headers["location"] == "/proof?next=/backoffice/partners"
    led = await visitor.get(led.headers["location"])
    assert led.headers["location"] == "/security/passkey?next=/backoffice/partners"
    before = visitor.session
    assert (await enrolled(visitor, key, led.headers["location"])).status_code == 303
    assert visitor.session != before
    assert (await visitor.get("/backoffice/partners")).status_code == 200
    later = await by_link(world, TEAM)
    assert (await later.get("/backoffice")).headers["location"] == "/proof?next=/backoffice"
    refused = await proved(later, authenticator())
    assert (refused.status_code, "passkey_refused" in refused.text) == (400, True)
    assert (await later.get("/backoffice")).status_code == 303
    answer = await proved(later, key, "/backoffice")
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice")
    assert (await later.get("/backoffice")).status_code == 200


async def test_pages_of_before_a_proof_work_on(world):
    """In other tabs: their forms are sent in the new session, and signing out ends it."""
    by_key, key = await by_link(world, MEMBER), authenticator()
    again = await by_link(world, "other@example.com")
    sessions, tokens = (by_key.session, again.session), (by_key.csrf, again.csrf)
    await enrolled(by_key, key)
    assert (await proved(by_key, key)).status_code == 303
    link = await asked(world, again, email="other@example.com")
    assert (await again.post(f"/sign-in/{link}")).status_code == 303
    for visitor, before, token in zip((by_key, again), sessions, tokens, strict=True):
        assert visitor.session != before
        visitor.csrf = token
        assert (await visitor.post("/security/sessions/end")).headers["location"] == "/security"
        kept = visitor.session
        assert kept
        assert (await visitor.post("/sign-out")).status_code == 303
        assert await world.service.sessions.read(kept) is None


async def test_pages_of_somebody_else_do_not_work_on(world):
    """Where a link signs in another person than the one before, in the same browser."""
    visitor = await by_link(world, MEMBER)
    link = await asked(world, visitor, email="other@example.com")
    assert (await visitor.post(f"/sign-in/{link}")).status_code == 303
    assert (await visitor.post("/security/sessions/end")).status_code == 409


async def test_what_weighs_asks_for_a_fresh_proof(world, monkeypatch):
    """Partners' access, connections, live keys and colleagues: ten minutes after the last proof.

    Nothing is written, and the way back leads to the page of the form.
    """
    await world.service.staff.add(TEAM, STAFF)
    partner_id = await world.service.partners.add("Books", "books@example.com", STAFF)
    approved = (await world.partner()).partner_id
    await world.service.partners.add_member(approved, MEMBER, STAFF)
    await world.service.partners.add_member(approved, "colleague@example.com", STAFF)
    own, colleague = (await world.service.partners.look(approved)).members
    live, test = [
        await world.service.partners.issue_key(approved, mode, STAFF) for mode in ("live", "test")
    ]
    entity_id = await world.service.modes["live"].entities.add("B", "b@example.com", None, STAFF)
    staff, member = [await Visitor(world).sign_in(one) for one in (TEAM, MEMBER)]
    form = await issuing(member, approved)
    forms = [
        (staff, f"/backoffice/partners/{partner_id}", "/approve", {}),
        (staff, f"/backoffice/partners/{approved}", "/website", {"website": "example.com"}),
        (staff, f"/backoffice/partners/{approved}/revoke", "", {}),
        (staff, f"/backoffice/entities/{entity_id}/connect", "", {"partner_id": approved}),
        (staff, f"/backoffice/entities/{entity_id}/disconnect/{approved}", "", {}),
        (member, f"/console/{approved}/keys", "", form),
        (member, f"/console/{approved}/keys/{live.key_id}/roll", "", {"overlap": "24h"}),
        (member, f"/console/{approved}/keys/{live.key_id}/revoke", "", {}),
        (member, f"/console/{approved}/team", "", {"email": "another@example.com"}),
        (member, f"/console/{approved}/team/{colleague}/remove", "", {}),
    ]
    monkeypatch.setattr("service.people.sessions.FRESH", timedelta())  # as if it was long ago
    for visitor, page, path, fields in forms:
        answer = await visitor.post(f"{page}{path}", **fields)
        assert answer.status_code == 303, page
        assert answer.headers["location"] == f"/proof?next={page}"
    assert (await world.service.partners.look(partner_id)).status == "pending"
    partner = await world.service.partners.look(approved)
    assert (partner.status, list(partner.members)) == ("approved", [own, colleague])
    assert not partner.keys[live.key_id].revoked
    revoked = await member.post(f"/console/{approved}/keys/{test.key_id}/revoke")
    assert revoked.headers["location"] == f"/console/{approved}/keys"
    test_key = await member.post(f"/console/{approved}/keys", **form | {"mode": "test"})
    assert test_key.status_code == 200
    left = await member.post(f"/console/{approved}/team/{own}/remove")
    assert left.headers["location"] == "/console"
    again = (await member.get("/proof", params={"next": "/console"})).text  # having no passkey
    assert f"You are signed in as <strong>{MEMBER}</strong>. To continue, sign in again" in again
    for kept in ('action="/sign-in"', 'name="next" value="/console"', f'value="{MEMBER}"'):
        assert kept in again


async def issuing(visitor, partner_id):
    """Return the fields of the form that issues a live key."""
    page = (await visitor.get(f"/console/{partner_id}/keys")).text
    names = {
        name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("key_id", "proof")
    }
    return {name: found[1] for name, found in names.items() if found} | {"mode": "live"}


async def test_a_member_with_a_passkey_issues_live_keys_with_it_alone(world):
    """A fresh link is enough until a passkey is set up, and not afterwards, to remove it either."""
    partner_id = (await world.partner()).partner_id
    await world.service.partners.add_member(partner_id, MEMBER, STAFF)
    path, key = f"/console/{partner_id}/keys", authenticator()
    member = await by_link(world, MEMBER)
    assert (await member.post(path, **await issuing(member, partner_id))).status_code == 200
    assert (await enrolled(member, key)).status_code == 303
    thief = await by_link(world, MEMBER)
    (passkey,) = await world.service.passkeys.of(await person_of(world, MEMBER))
    remove = f"/security/passkeys/{passkey.passkey_id}/remove"
    for post, fields in ((path, await issuing(thief, partner_id)), (remove, {})):
        answer = await thief.post(post, **fields)
        assert (answer.status_code, answer.headers["location"][:7]) == (303, "/proof?"), post
    assert (await thief.get("/security/passkey")).headers["location"].startswith("/proof?")
    assert (await proved(thief, key)).status_code == 303
    thief.csrf = await csrf_of(world, thief)
    assert (await thief.post(path, **await issuing(thief, partner_id))).status_code == 200
    assert (await thief.post(remove)).headers["location"] == "/security?done=removed"
    assert await world.service.passkeys.of(thief.person.person_id) == []
    led = await member.get("/account")  # what was begun with that passkey has ended
    assert led.headers["location"].startswith("/sign-in")


async def test_removing_a_passkey_is_confirmed_and_said(world):
    """The page before names what it does to the passkey and to sessions, the one after that too."""
    visitor = await by_link(world, MEMBER)
    await enrolled(visitor, authenticator())
    (passkey,) = await world.service.passkeys.of(await person_of(world, MEMBER))
    path = f"/security/passkeys/{passkey.passkey_id}/remove"
    listed = (await visitor.get("/security")).text
    assert f'href="{path}"' in listed
    assert "was removed" not in listed
    asked_first = (await visitor.get(path)).text
    for effect in ("will no longer be accepted", "All your other sessions end"):
        assert effect in asked_first
    visitor.csrf = await csrf_of(world, visitor)
    answer = await visitor.post(path)
    shown = (await visitor.get(answer.headers["location"])).text
    assert "The passkey was removed, and your other sessions have ended." in shown
    assert (await visitor.get(path)).headers["location"] == "/security"  # there is none


async def person_of(world, email):
    """Return the person id of an address."""
    return (await Visitor(world).sign_in(email)).person.person_id


async def csrf_of(world, visitor):
    """Return the token of a visitor's forms."""
    person = await world.service.sessions.read(visitor.session)
    return form_token(await world.service.secrets.get(), person)


async def test_only_our_own_ceremonies_count(world):
    """Of another host, another origin, without the person, another session, twice or too late."""
    visitor = await by_link(world, MEMBER)
    other = await by_link(world, "other@example.com")
    foreign = (
        authenticator(origin="https://evil.example"),
        authenticator(host="evil.example"),
        authenticator(flags=PRESENT),
    )
    for key in foreign:
        assert (await enrolled(visitor, key)).status_code == 400
    key = authenticator()
    options, challenge = await ceremony(visitor, "/security/passkey")
    fields = {"challenge": challenge, "credential": key.create(options)}
    _, theirs = await ceremony(other, "/security/passkey")
    malformed = (
        {"challenge": theirs},
        {"challenge": "9" * 400},
        {"challenge": "0.x"},
        {"credential": ""},
        {"credential": "[" * 4_000},
        {"credential": '{"id": 1}'},
        {"credential": json.dumps({"response": {}, "rawId": "!", "id": "!", "type": "x"})},
    )
    for wrong in malformed:
        answer = await visitor.post("/security/passkey", **fields | wrong)
        assert (answer.status_code, "passkey_refused" in answer.text) == (400, True), wrong
    assert await world.service.passkeys.of(await person_of(world, MEMBER)) == []
    assert (await visitor.post("/security/passkey", **fields)).status_code == 303
    visitor.csrf = await csrf_of(world, visitor)
    again = await visitor.post("/security/passkey", **fields)
    assert again.status_code == 400  # the session that it was for has ended


async def test_a_user_handle_identifies_nobody(world):
    """A device keeps it, and replaces the passkey of an equal one: each page has another."""
    visitor = await by_link(world, MEMBER)
    users = [(await ceremony(visitor, "/security/passkey"))[0]["user"] for _ in range(2)]
    first, second = (base64.urlsafe_b64decode(one["id"] + "==") for one in users)
    assert first != second
    assert visitor.person.person_id.encode() not in first


async def test_a_proof_is_good_for_one_session(world):
    """Sent again, beside the session that it began, it begins none."""
    visitor, key = await by_link(world, MEMBER), authenticator()
    await enrolled(visitor, key)
    options, challenge = await ceremony(visitor, "/proof")
    fields = {"challenge": challenge, "credential": key.get(options), "next": "/account"}
    stolen = Visitor(world)
    stolen.keep(visitor.session)
    stolen.csrf = visitor.csrf
    first = await visitor.post("/proof", **fields)
    second = await stolen.post("/proof", **fields)
    assert first.headers["location"] == "/account"
    assert second.headers["location"].startswith("/sign-in")
    assert "set-cookie" not in second.headers


async def test_a_proof_prolongs_no_session(world):
    """However often somebody proves with a passkey, they need the mailbox again after 12 hours."""
    visitor, key = await by_link(world, MEMBER), authenticator()
    begun = visitor.person.ends_at
    await enrolled(visitor, key)
    for _ in range(2):
        assert (await proved(visitor, key)).status_code == 303
        visitor.csrf = await csrf_of(world, visitor)
    person = await world.service.sessions.read(visitor.session)
    assert (person.by_passkey, person.is_fresh, person.ends_at) == (True, True, begun)


async def test_whoever_reads_the_mail_ends_sessions_without_a_passkey(world, monkeypatch):
    """Somebody else's passkey keeps no owner from it; it takes having signed in lately."""
    thief = await by_link(world, MEMBER)
    await enrolled(thief, authenticator())
    for path, led in (
        ("/security/sessions/{}/end", "/security"),
        ("/security/sessions/end", "/security"),
        ("/account/sign-out", "/sign-in"),
    ):
        thief = await Visitor(world).sign_in(MEMBER)
        owner = await by_link(world, MEMBER)
        answer = await owner.post(path.format(thief.person.session_id))
        assert answer.headers["location"] == led, path
        assert (await thief.get("/account")).status_code == 303, path
    late = await by_link(world, MEMBER)
    monkeypatch.setattr("service.people.sessions.FRESH", timedelta())  # as if it was long ago
    answer = await late.post("/account/sign-out")
    assert answer.headers["location"] == "/proof?next=/account"
    assert "you need no passkey" in (await late.get("/proof")).text


async def test_another_of_the_team_recovers_whoever_lost_their_passkeys(world):
    """It is an event with their name; the sessions end, and a link alone enrols anew."""
    await world.service.staff.add(TEAM, STAFF)
    helper_id = await world.service.staff.add("helper@example.com", STAFF)
    lost = await by_link(world, TEAM)
    await enrolled(lost, authenticator())
    person_id = await person_of(world, TEAM)
    path = f"/backoffice/people/{person_id}/recover"
    own = await (await Visitor(world).sign_in(TEAM)).post(path)
    assert (own.status_code, "own_recovery" in own.text) == (409, True)
    helper = await Visitor(world).sign_in("helper@example.com")
    assert TEAM in (await helper.get("/backoffice/people")).text
    assert path in (await helper.get(f"/backoffice/people/{person_id}")).text
    assert (await helper.post(path)).status_code == 303
    assert await recorded(world, person_id) == [
        (PasskeyAdded, f"customer:{person_id}"),
        (PasskeysReset, f"staff:{helper_id}"),
    ]
    assert (await lost.get("/account")).headers["location"].startswith("/sign-in")
    again = await by_link(world, TEAM)
    assert (await enrolled(again, authenticator())).status_code == 303
    assert (await again.get("/backoffice")).status_code == 200


@pytest.mark.parametrize(
    ("host", "possible"),
    [("api.example.com", True), ("localhost", True), ("127.0.0.1", False), ("::1", False)],
)
def test_browsers_have_no_passkeys_of_an_ip_address(host, possible):
    """There, as in `dev`, the back office asks for none."""
    nothing: Any = None
    assert Ceremonies(nothing, nothing, nothing, host).are_possible is possible
