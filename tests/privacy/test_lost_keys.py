"""A data key that is missing without an erasure is a loss, and reported as one."""

import psycopg
import pytest

from service.cli.keys_at_rest import verify_all
from service.cli.verdict import Findings, Fine
from service.privacy import lost_keys
from tests.ledger.raw_events import RawEvent, write_foreign
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
    partner = await privacy.documents.world.partner()
    entity_id = await partner.connected_entity()
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


NAMELESS = """
insert into live.events (originator_id, originator_version, topic, state)
select
    gen_random_uuid(), 1, e.topic,
    convert_to(
        (convert_from(e.state, 'UTF8')::jsonb || jsonb_build_object(
            'data', array['not an object'],
            'sealed', jsonb_build_object('key', gen_random_uuid(), 'box', '')
        ))::text,
        'UTF8'
    )
from live.events as e
join live.claim_list as l on l.stream_id = e.originator_id and e.originator_version = 1
where l.claim_id = %s
"""


async def test_nobody_elses_word_makes_a_lost_key_an_erasure(privacy, remove_keys, owner):
    """Whoever has the login removed a key, and keeps an event waiting that says it was erased.

    Nor is a claim erased by it whose key is there.
    """
    partner = await privacy.documents.world.partner()
    entity_id = await partner.connected_entity()
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
    partner = await privacy.documents.world.partner()
    entity_id = await partner.connected_entity()
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
    owner.execute(NAMELESS, [lost])
    answer = await verify_all(privacy.service)
    assert [one["subject"] for one in answer["lost_keys"]] == [lost, another, None]
    monkeypatch.setattr(lost_keys, "NAMED_MAX", 1)
    answer = await verify_all(privacy.service)
    assert (answer["events_lost"], len(answer["lost_keys"])) == (3, 1)
