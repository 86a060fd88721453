"""Finding a person's data: every place, no value, and nothing after erasure."""

import re

import msgspec
import psycopg
import pytest

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.privacy.subjects import SUBJECT_FIELDS
from service.privacy.text_search import Sought
from tests.sessions import session_of
from tests.world import STAFF

EMAIL = "Zoe.Canary@Example.com"
HASH = "ab" * 32


async def spread(privacy):
    """Store an address wherever addresses can be; return (entity ids, claim ids)."""
    partner, entity_id = await privacy.documents.world.connected()
    made = await partner.claim(
        entity_id,
        message=f"Ask {EMAIL.lower()}.",
        defendant={"name": "Debtor", "email": EMAIL},
    )
    assert made.status_code == 201, made.text
    body = {"partner_user_id": "u", "company_name": "New", "user_email": EMAIL}
    started = await partner.call("POST", "/onboardings", json=body)
    row = await privacy.service.modes["live"].onboarding_list.by_id(started.json()["onboarding_id"])
    return row["entity_id"], made.json()["claim_id"]


async def test_every_place_before_and_none_after(privacy):
    """Event fields, read models and waiting mail; nothing once both subjects are erased."""
    entity_id, claim_id = await spread(privacy)
    before = await privacy.found(EMAIL.upper())
    await privacy.erase_claim(claim_id)
    between = await privacy.found(EMAIL)
    await privacy.erase_entity(entity_id)
    after = await privacy.found(EMAIL)
    places = {(one.kind, one.topic, one.field) for one in before}
    assert {
        ("event", "ClaimCreated", "details.defendant.email"),
        ("event", "FirstMessagePosted", "text"),
        ("event", "OnboardingStarted", "details.user_email"),
        ("event", "EntityRegistered", "email"),
        ("event", "EntityRegistered", "email_hash"),
        ("row", "entities", "email_hash"),
    } <= places
    assert all(one.is_sealed for one in before if one.kind == "event")
    assert not any("canary" in str(one).casefold() for one in before)
    subjects = {(one.topic, one.subject) for one in before if one.kind == "event"}
    assert subjects >= {("FirstMessagePosted", claim_id), ("OnboardingStarted", entity_id)}
    assert {one.subject for one in before if one.kind != "event"} == {None}
    assert {one.topic for one in between} <= {
        *("OnboardingStarted", "EntityRegistered", "entities", "mail_outbox"),
    }
    assert after == []


async def test_events_are_named_by_their_place_in_the_log(privacy):
    """A numbered event by its position, others by their append_id."""
    live = privacy.service.modes["live"].entities
    await live.add("Canary Ltd", EMAIL, None, STAFF)
    await privacy.number()
    (place, *_) = await privacy.found(EMAIL)
    assert place.where.startswith("position ")
    assert place.where.endswith("version 1")


async def test_a_session_is_named_by_a_key_that_sql_takes(privacy, database_url):
    """A key of bytes is shown in PostgreSQL's notation, which finds the row."""
    await session_of(privacy.service, EMAIL)
    (place,) = await privacy.found(EMAIL)
    name, _, value = place.where.partition(" ")
    with psycopg.connect(database_url) as owner:
        found = owner.execute(
            "select session_id from accounts.sessions where token_hash = %s::bytea", [value]
        ).fetchall()
    assert (place.topic, name, len(found)) == ("sessions", "token_hash", 1)
    assert re.fullmatch(r"\\x[0-9a-f]{64}", value)


async def test_unencrypted_places_are_marked(privacy):
    """An address in a partner's own reference is out of an erasure's reach."""
    partner, entity_id = await privacy.documents.world.connected()
    await partner.claim(entity_id, partner_user_id=EMAIL)
    places = {(one.kind, one.topic, one.field, one.is_sealed) for one in await privacy.found(EMAIL)}
    assert places == {
        ("event", "ClaimCreated", "partner_user_id", False),
        ("row", "claim_list", "partner_user_id", None),
    }


async def test_partners_contacts_are_found_in_accounts(privacy):
    """A partner's own address is found as well."""
    await privacy.service.partners.add("A partner", EMAIL, STAFF)
    places = {(one.ledger, one.topic, one.field) for one in await privacy.found(EMAIL)}
    assert places == {("accounts", "PartnerApplied", "email"), ("accounts", "partners", "email")}


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("a@example.com", True),
        ("A@EXAMPLE.COM", True),
        ("Write to <a@example.com>, please.", True),
        ("a@example.com.", True),
        ("mailto:a@example.com?subject=x", True),
        ("joanna@example.com", False),
        ("x.a@example.com", False),
        ("a@example.com.au", False),
        ("a@example.company", False),
        ("a@example.com-b", False),
        ("", False),
    ],
)
def test_an_address_is_not_part_of_another(text, is_there):
    """It is found in any case, but not inside a longer address."""
    assert list(Sought("a@example.com", HASH).paths({"x": text})) == (["x"] if is_there else [])


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("Herr ZOE\u0308 Strasse", True),
        ("herr zoë straße jr.", True),
        ('"Zoë Straße"', True),
        ("Zoë  Straße", False),
        ("Zoe Straße", False),
    ],
)
def test_a_name_is_found_within_a_text(text, is_there):
    """In any case and composition of letters, in the quick look and in the thorough one."""
    sought = Sought("Zoë Straße")
    assert list(sought.paths({"x": text})) == (["x"] if is_there else [])
    assert sought.may_be_in(msgspec.json.encode({"x": text})) == is_there
    assert list(sought.paths({"x": text.encode()})) == (["x"] if is_there else [])


def test_a_short_name_is_not_found_in_a_hash():
    """Nor in other bytes that are no text, where an address still is."""
    assert list(Sought("li").paths(b"\xffli")) == []
    assert list(Sought("li").paths(b"Li")) == [""]
    assert list(Sought("li@example.com", HASH).paths(b"\xff li@example.com")) == [""]


def test_every_personal_field_has_a_subject():
    """Each event with personal fields names whose they are: `find` shows it, and keys are lost."""
    events = (ACCOUNTS | PARTNER_LEDGER).values()
    without = [
        one.__name__
        for one in events
        if one.personal and not set(SUBJECT_FIELDS) & set(one.__struct_fields__)
    ]
    assert (len(events) > 20, without) == (True, [])


def test_paths_lead_to_the_field():
    """Through objects and lists, by hash in text and bytes; names are not shown."""
    sought = Sought("STRASSE@example.com", HASH)
    value = {
        "list": [{"deep": "straße@example.com"}, "no"],
        "hash": HASH,
        "bytes": bytes.fromhex(HASH),
        "strasse@example.com": 1,
        "number": 7,
    }
    assert list(sought.paths(value)) == ["list[0].deep", "hash", "bytes", "(a name)"]
