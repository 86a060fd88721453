"""A data key that is missing without an erasure is a loss, and reported as one."""

from uuid import uuid4

import msgspec
import psycopg
import pytest

from service.cli.keys_at_rest import verify_all
from service.cli.verdict import Findings, Fine
from service.privacy import lost_keys
from tests.ledger.raw_events import RawEvent, write_foreign, write_raw
from tests.privacy.links import labelled_link
from tests.world import STAFF


async def claim_of(partner, entity_id, reference):
    """Create a claim; return its id."""
    return (await partner.claim(entity_id, reference)).json()["claim_id"]


@pytest.fixture
def remove_keys(database_url):
    """Return a function that deletes claims' data keys without an erasure."""

    def remove_keys(*claim_ids):
        with psycopg.connect(database_url) as owner:
            owner.execute(
                "delete from live.data_keys where key_id in"
                " (select stream_id from live.claim_list where claim_id = any(%s))",
                [list(claim_ids)],
            )

    return remove_keys


async def test_erased_subjects_are_no_loss(privacy, monkeypatch):
    """Nor are subjects with their key: claims, entities, links, onboardings, partners."""
    monkeypatch.setattr(lost_keys, "PAGE", 3)
    partner, entity_id = await privacy.documents.world.connected()
    live = privacy.service.modes["live"].connections
    other = await privacy.documents.world.partner()
    await live.approve(await labelled_link(other), entity_id, STAFF)
    erased, _ = [await claim_of(partner, entity_id, name) for name in ("a", "b")]
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "n@example.com"}
    started = (await partner.call("POST", "/onboardings", json=body)).json()["onboarding_id"]
    row = await privacy.service.modes["live"].onboarding_list.by_id(started)
    await privacy.erase_claim(erased)
    await privacy.erase_entity(entity_id)
    await privacy.erase_entity(row["entity_id"])
    answer = await verify_all(privacy.service)
    assert (answer["events_lost"], answer["lost_keys"]) == (0, [])
    assert type(answer) is Fine


def claim_naming(owner, claim_id, key_id, data):
    """Return an event as a claim's first one, with other data and a box that no key opens."""
    topic, state = owner.execute(
        "select e.topic, e.state from live.events as e join live.claim_list as l"
        " on l.stream_id = e.originator_id and e.originator_version = 1 where l.claim_id = %s",
        [claim_id],
    ).fetchone()
    sealed = {"key": str(key_id), "box": ""}
    state = msgspec.json.decode(state) | {"data": data, "sealed": sealed}
    return RawEvent(uuid4(), 1, topic, msgspec.json.encode(state))


async def test_nobody_elses_event_says_what_is_under_a_key(privacy, owner):
    """Whoever has the login names a key that is there, and one that never was, with foreign boxes.

    Those events are counted apart, and accuse no key.
    """
    partner = await privacy.documents.world.partner()
    claim_id = await claim_of(partner, await partner.connected_entity(), "a")
    await privacy.number()
    (key_id,) = owner.execute("select stream_id from live.claim_list").fetchone()
    said = [
        claim_naming(owner, claim_id, one, {"claim_id": {"a": [1]}}) for one in (key_id, uuid4())
    ]
    with owner.transaction():
        owner.execute("select from live.head for update")
        await write_foreign(privacy.service.ledger("live"), *said)
        answer = await verify_all(privacy.service)
    assert type(answer) is Fine
    assert answer["events_foreign"] == 2
    assert (answer["lost_keys"], answer["unfit_keys"]) == ([], [])


async def test_nobody_elses_word_makes_a_lost_key_an_erasure(privacy, remove_keys, owner):
    """Whoever has the login removed a key, and keeps an event waiting that says it was erased.

    Nor is a claim erased by it whose key is there.
    """
    partner, entity_id = await privacy.documents.world.connected()
    kept, lost = [await claim_of(partner, entity_id, name) for name in "ab"]
    await privacy.number()
    remove_keys(lost)
    rows = owner.execute("select stream_id from live.claim_list").fetchall()
    said = [RawEvent(stream, 9, "PersonalDataErased", b"{}") for (stream,) in rows]
    with owner.transaction():
        owner.execute("select from live.head for update")
        await write_foreign(privacy.service.ledger("live"), *said)
        answer = await verify_all(privacy.service)
        done = await privacy.erase_entity(entity_id)
    assert type(answer) is Findings
    assert [one["subject"] for one in answer["lost_keys"]] == [lost]
    assert [(one.claim_id, one.erased) for one in done.claims] == [(kept, False), (lost, False)]


async def test_lost_keys_are_listed(privacy, remove_keys, owner, monkeypatch):
    """Each once, by its subject if its first event has one, with the count of its events."""
    monkeypatch.setattr(lost_keys, "PAGE", 2)
    partner, entity_id = await privacy.documents.world.connected()
    kept, lost, another = [await claim_of(partner, entity_id, name) for name in "abc"]
    await privacy.number()
    remove_keys(lost, another)
    answer = await verify_all(privacy.service)
    assert type(answer).__name__ == "Findings"
    assert [one["subject"] for one in answer["lost_keys"]] == [lost, another]
    assert {one["ledger"] for one in answer["lost_keys"]} == {"live"}
    assert all(one["position"] for one in answer["lost_keys"])
    assert answer["events_lost"] == 2
    assert kept not in str(answer)
    nameless = [
        claim_naming(owner, lost, uuid4(), data)
        for data in (["not an object"], {"claim_id": {"not": "a string"}})
    ]
    await write_raw(privacy.service.ledger("live"), *nameless)
    answer = await verify_all(privacy.service)
    assert [one["subject"] for one in answer["lost_keys"]] == [lost, another, None, None]
    monkeypatch.setattr(lost_keys, "NAMED_MAX", 1)
    answer = await verify_all(privacy.service)
    assert (answer["events_lost"], len(answer["lost_keys"])) == (4, 1)
