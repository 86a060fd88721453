"""Stored keys that are not what they should be: exchanged, altered, mislabelled, or back."""

import asyncio
import base64
from datetime import timedelta
from uuid import UUID

import pytest

from service.cli.keys_at_rest import verify_all
from service.cli.verdict import Fine
from service.core.clock import timestamp
from service.evidence.event_keys import draw_event_key
from service.ledger.encryption import MasterKeys
from service.ledger.service_keys import ServiceKeyStore
from service.privacy import faulty_keys
from service.privacy.erasure_list import ListedErasure
from tests.sessions import BROWSER, session_of
from tests.world import MASTER_KEY, STAFF

RING = MasterKeys([base64.b64decode(MASTER_KEY)])
MATCH = "Idempotent-Payload-Match"
SAID_ERASED = """
insert into live.events (originator_id, originator_version, topic, state)
values (%s, 2, 'PersonalDataErased', '{}')
"""
CLEAN = {
    "events_lost": 0,
    "lost_keys": [],
    "events_unfit": 0,
    "unfit_keys": [],
    "events_foreign": 0,
    "keys_faulty": 0,
    "faulty_keys": [],
}


@pytest.fixture
async def entities(privacy):
    """Return ids of three businesses by the stream, and key, of each."""
    add = privacy.service.modes["live"].entities.add
    ids = [await add(f"B{n}", f"key{n}@example.com", None, STAFF) for n in range(3)]
    return {str((await privacy.parts().subjects.entity(one)).stream_id): one for one in ids}


async def faults(privacy):
    """Return what is wrong with which key; the command exits with 1 for it."""
    answer = await verify_all(privacy.service)
    assert type(answer).__name__ == "Findings"
    assert answer["keys_faulty"] == len(answer["faulty_keys"])
    return {
        (one["ledger"], one["keys"], one["name"]): one["fault"] for one in answer["faulty_keys"]
    }


async def test_a_clean_installation_has_none(privacy, entities):
    """Nor are keys of erased subjects, or sessions and links that are over."""
    service = privacy.service
    session = await session_of(service, "person@example.com")
    await session_of(service, "another@example.com")
    await service.sign_in.ask("person@example.com", "/", BROWSER)
    await service.sessions.end(session.token)
    await privacy.erase_entity(next(iter(entities.values())))
    answer = await verify_all(service)
    assert (answer, type(answer)) == (CLEAN, Fine)


async def test_keys_that_changed_places_are_named(privacy, entities, owner, monkeypatch):
    """Each names the other; one that was copied over another belongs elsewhere."""
    monkeypatch.setattr(faulty_keys, "BATCH", 2)
    first, second, third = sorted(entities)
    stored = dict(owner.execute("select key_id::text, wrapped from live.data_keys").fetchall())
    put = "update live.data_keys set wrapped = %s where key_id = %s"
    for name, other in ((first, third), (third, first)):
        owner.execute(put, [stored[other], name])
    assert await faults(privacy) == {
        ("live", "data_keys", first): f"it is the key of {third}",
        ("live", "data_keys", third): f"it is the key of {first}",
    }
    owner.execute(put, [stored[second], first])
    owner.execute(put, [stored[third], third])
    assert await faults(privacy) == {
        ("live", "data_keys", first): "it was altered, or belongs elsewhere",
    }


async def test_altered_and_mislabelled_keys_are_told_apart(privacy, entities, owner):
    """So are those of a master key that the ring lacks; the service's own secrets, too."""
    altered, mislabelled, _ = sorted(entities)
    await privacy.service.secrets.get()
    owner.execute(
        "update live.data_keys set wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1)"
        " where key_id = %s",
        [altered],
    )
    owner.execute(
        "update live.data_keys set master_key_id = 'of another' where key_id = %s", [mislabelled]
    )
    owner.execute("update accounts.service_keys set wrapped = '' where name = 'pepper'")
    owner.execute("insert into accounts.service_keys values ('x', '\\x00', 'nokey')")
    unknown = str(UUID(int=7))
    owner.execute("insert into test.data_keys values (%s, 'x', 'nobody')", [unknown])
    assert await faults(privacy) == {
        ("live", "data_keys", altered): "it was altered, or belongs elsewhere",
        ("live", "data_keys", mislabelled): (
            f"it names master key of another, and {RING.newest} wrapped it"
        ),
        ("accounts", "service_keys", "pepper"): "it was altered, or belongs elsewhere",
        ("accounts", "service_keys", "x"): faulty_keys.STRANGE,
        ("test", "data_keys", unknown): "no master key nobody in the ring",
    }


async def test_an_altered_session_is_a_finding(privacy, owner):
    """So is one that was prolonged, or revived after its end."""
    service = privacy.service
    one, other = [await session_of(service, "person@example.com") for _ in range(2)]
    await service.sessions.end(other.token)
    owner.execute(
        "update accounts.sessions set ended_at = null, expires_at = expires_at + interval '1 day'"
    )
    found = await faults(privacy)
    assert set(found) == {
        ("accounts", "sessions", session.person.session_id) for session in (one, other)
    }


async def test_a_key_that_came_back_is_a_finding_and_opens_nothing(privacy, owner):
    """Whoever puts an erased subject's key back can read nothing through the service."""
    partner, entity_id = await privacy.documents.world.connected()
    body = {"message": "Ask private@example.com."}
    claim_id = (await partner.claim(entity_id, "a", **body)).json()["claim_id"]
    stream = str((await privacy.claim(claim_id)).stream_id)
    owner.execute("create table public.kept as select * from live.data_keys")
    await privacy.erase_claim(claim_id)
    owner.execute(
        "insert into live.data_keys select * from public.kept where key_id = %s", [stream]
    )
    claim = await privacy.service.modes["live"].claims.show(claim_id)
    assert (claim.personal, claim.created.details, claim.message.text) == ("erased", None, None)
    assert await faults(privacy) == {("live", "data_keys", stream): faulty_keys.REVIVED}
    found = await privacy.found("private@example.com")  # a search says what could be read
    assert [one.field for one in found] == ["text"]
    replay = await partner.claim(entity_id, "a", **body)
    assert (replay.status_code, replay.headers.get(MATCH)) == (200, None)


async def test_a_key_that_came_back_compares_no_onboarding(privacy, owner):
    """A replay after an erasure is answered without a comparison."""
    partner = await privacy.documents.world.partner()
    body = {"partner_user_id": "u", "company_name": "B", "user_email": "private@example.com"}
    await partner.call("POST", "/onboardings", json=body)
    replay = await partner.call("POST", "/onboardings", json=body)
    assert replay.headers[MATCH] == "true"
    owner.execute("create table public.kept as select * from live.data_keys")
    row = owner.execute(
        "select entity_id from live.onboardings where partner_id = %s", [partner.partner_id]
    ).fetchone()
    await privacy.erase_entity(row[0])
    owner.execute("insert into live.data_keys select * from public.kept on conflict do nothing")
    replay = await partner.call("POST", "/onboardings", json=body)
    assert (replay.status_code, replay.headers.get(MATCH)) == (200, None)


async def test_a_key_that_a_restore_brought_back_is_a_finding(privacy, entities, owner):
    """The list outside the database knows of the erasure, of which the log knows nothing."""
    partner = await privacy.documents.world.partner()
    claim_id = (await partner.claim(await partner.connected_entity(), "a")).json()["claim_id"]
    erased = next(iter(entities))
    streams = {erased, str((await privacy.claim(claim_id)).stream_id)}
    owner.execute("create table public.kept as select * from live.data_keys")
    await privacy.erase_entity(entities[erased])
    await privacy.erase_claim(claim_id)
    # A whole table is waited for beside the loop, whose own transactions may hold it.
    for table in ("events", "log"):
        await asyncio.to_thread(owner.execute, f"alter table live.{table} disable trigger user")
    await asyncio.to_thread(owner.execute, "delete from live.pending")
    await asyncio.to_thread(owner.execute, "truncate live.log")
    owner.execute("delete from live.events where topic = 'PersonalDataErased'")
    owner.execute("insert into live.data_keys select * from public.kept on conflict do nothing")
    assert await faults(privacy) == {
        ("live", "data_keys", stream): faulty_keys.LISTED for stream in streams
    }


async def test_what_somebody_else_says_was_erased_changes_no_finding(privacy, entities, owner):
    """An event without a MAC of this service accuses no key, and clears none."""
    stream, entity_id = next(iter(entities.items()))
    owner.execute(SAID_ERASED, [stream])
    assert await verify_all(privacy.service) == CLEAN
    assert await privacy.parts().erasures.unlisted() == 0
    entry = ListedErasure(
        ledger="live",
        kind="entity",
        subject=entity_id,
        data_keys=[UUID(stream)],
        reason="case 1",
        at=privacy.service.clock(),
    )
    await privacy.listed.put(entry)
    assert await faults(privacy) == {("live", "data_keys", stream): faulty_keys.LISTED}


async def test_a_key_that_does_not_open_its_events_is_a_finding(privacy, entities, owner):
    """An older key of the same name unwraps, and opens nothing."""
    name = next(iter(entities))
    other = RING.new_data_key(UUID(name))
    owner.execute(
        "update live.data_keys set wrapped = %s, master_key_id = %s where key_id = %s",
        [other.wrapped, other.master_key_id, name],
    )
    answer = await verify_all(privacy.service)
    assert type(answer).__name__ == "Findings"
    assert (answer["events_unfit"], answer["keys_faulty"], answer["events_lost"]) == (1, 0, 0)
    assert [(one["data_key"], one["subject"]) for one in answer["unfit_keys"]] == [
        (UUID(name), entities[name])
    ]


async def test_an_event_key_is_what_the_log_says(privacy, owner):
    """One that was removed, or made to sign at another time, is found."""
    service = privacy.service
    await service.secrets.get()
    keys = ServiceKeyStore(service.accounts.database, service.accounts.master_keys)
    key_id, signs_from = await draw_event_key(service.accounts, keys, STAFF)
    assert type(await verify_all(service)) is Fine
    changed = signs_from + timedelta(days=1)
    owner.execute(
        "update accounts.event_keys set signs_from = %s where key_id = %s", (changed, key_id)
    )
    name = f"event key {key_id} since the start"
    fault = f"it signs from {timestamp(changed)}, and by the log {timestamp(signs_from)}"
    assert await faults(privacy) == {("accounts", "event_keys", name): fault}
    owner.execute("delete from accounts.event_keys where key_id = %s", (key_id,))
    gone = ("accounts", "event_keys", f"event key {key_id}")
    assert await faults(privacy) == {gone: faulty_keys.GONE}
