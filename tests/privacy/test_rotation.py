"""Rewrapping keys under another master key while others write under the previous one."""

import asyncio
import base64
from contextlib import AsyncExitStack

import psycopg
import pytest

from service.app.bootstrap import Service
from service.cli.keys_at_rest import rotate_all
from service.cli.verdict import Fine
from service.facts.entities import entity_stream
from service.ledger.encryption import KeyGone, KeyUnknown, MasterKeys
from service.people.sign_in import PURPOSE
from service.privacy import rotation
from tests.ledger.secrets_before import insert_secrets_of_before
from tests.sessions import BROWSER, session_of
from tests.world import PATIENCE_SECONDS, STAFF, settings_for

OLD, NEW, LOST = (base64.b64encode(bytes([number]) * 32).decode() for number in range(3))
OLD_ID, NEW_ID, LOST_ID = (MasterKeys([base64.b64decode(key)]).newest for key in (OLD, NEW, LOST))
WRAPPED = "select master_key_id, count(*) from {0}.{1} group by 1 order by 1"
LOG = "select append_id, state from live.events order by append_id"


@pytest.fixture
async def with_ring(database_url, tmp_path):
    """Return a function that opens services with a given ring, newest key first."""
    async with AsyncExitStack() as opened:

        async def with_ring(*ring):
            settings = settings_for(database_url, tmp_path, MASTER_KEYS=",".join(ring))
            service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
            return await opened.enter_async_context(service.opened())

        yield with_ring


@pytest.fixture
def wrapped(database_url):
    """Return a function that counts keys by their master key."""

    def wrapped(ledger="live", table="data_keys"):
        with psycopg.connect(database_url) as owner:
            return dict(owner.execute(WRAPPED.format(ledger, table)).fetchall())

    return wrapped


async def add(service, count, first=0):
    """Register entities."""
    entities = service.modes["live"].entities
    return [
        await entities.add(f"B {number}", f"b{number}@example.com", None, STAFF)
        for number in range(first, first + count)
    ]


async def test_all_keys_are_rewrapped(with_ring, wrapped, database_url):
    """Data keys and service secrets; the unused id is named; the log is unchanged."""
    old = await with_ring(OLD)
    await add(old, 7)
    await old.partners.add("P", "p@example.com", STAFF)
    with psycopg.connect(database_url) as owner:
        before = owner.execute(LOG).fetchall()
    answer = await rotate_all(await with_ring(NEW, OLD))
    with psycopg.connect(database_url) as owner:
        after = owner.execute(LOG).fetchall()
    assert (wrapped(), wrapped("accounts"), wrapped("accounts", "service_keys")) == (
        {NEW_ID: 7},
        {NEW_ID: 1},
        {NEW_ID: 3},
    )
    assert (answer["newest"], answer["unused"], answer["still_used"]) == (NEW_ID, [OLD_ID], [])
    assert [(one["ledger"], one["keys"], one["rewrapped"]) for one in answer["tables"]] == [
        ("accounts", "data_keys", 1),
        ("live", "data_keys", 7),
        ("test", "data_keys", 0),
        ("accounts", "service_keys", 3),
        ("accounts", "event_keys", 1),
        ("accounts", "sessions", 0),
        ("accounts", "sign_in_links", 0),
    ]
    assert type(answer) is Fine
    assert after == before
    assert OLD_ID in answer["before_removing"]
    assert "run this again" in answer["before_removing"]


async def test_the_new_ring_alone_opens_everything(with_ring):
    """Without the old key, entities are read and found as before."""
    old = await with_ring(OLD)
    (entity_id,) = await add(old, 1)
    lookup = (await old.secrets.get()).lookup_email("b0@example.com")
    await rotate_all(await with_ring(NEW, OLD))
    new = await with_ring(NEW)
    assert (await new.secrets.get()).lookup_email("b0@example.com") == lookup
    access = await new.modes["live"].connection_list.access("", entity_id)
    assert access.name == "B 0"


async def signed_in(service):
    """Request a link and begin a session; return its token."""
    email = "person@example.com"
    await service.sign_in.ask(email, "/account", BROWSER)
    return (await session_of(service, email)).token


async def test_sessions_and_sign_in_links_are_rewrapped(with_ring, wrapped, database_url):
    """They go on working once the old key is removed."""
    old = await with_ring(OLD)
    token = await signed_in(old)
    answer = await rotate_all(await with_ring(NEW, OLD))
    new = await with_ring(NEW)
    with psycopg.connect(database_url) as owner:
        (link_id,) = owner.execute("select link_id from accounts.sign_in_links").fetchone()
    link = await new.sign_in.look((await new.secrets.get()).link_token(PURPOSE, link_id))
    person = await new.sessions.read(token)
    assert (answer["unused"], answer["still_used"], type(answer)) == ([OLD_ID], [], Fine)
    assert {one["keys"]: one["rewrapped"] for one in answer["tables"][5:]} == {
        "sessions": 1,
        "sign_in_links": 1,
    }
    assert (wrapped("accounts", "sessions"), wrapped("accounts", "sign_in_links")) == (
        {NEW_ID: 1},
        {NEW_ID: 1},
    )
    assert (person.email, link.email) == ("person@example.com", "person@example.com")


async def test_a_link_whose_mail_is_on_its_way_is_counted(with_ring, database_url):
    """It is locked while being sent: its key is still used, until the next run."""
    await signed_in(await with_ring(OLD))
    rotating = await with_ring(NEW, OLD)
    with psycopg.connect(database_url) as sending:
        sending.execute("select from accounts.sign_in_links for update")
        during = await rotate_all(rotating)
    after = await rotate_all(rotating)
    assert (during["unused"], during["still_used"]) == ([], [OLD_ID])
    assert type(during).__name__ == "Findings"
    assert (after["unused"], after["still_used"]) == ([OLD_ID], [])


async def test_expired_sessions_and_links_use_no_key(with_ring, database_url):
    """They keep no master key in the ring."""
    await signed_in(await with_ring(LOST))
    service = await with_ring(OLD, LOST)
    await rotate_all(service)
    with psycopg.connect(database_url, autocommit=True) as owner:
        for table in ("sessions", "sign_in_links"):
            owner.execute(
                f"update accounts.{table} set expires_at = now(), master_key_id = %s",  # noqa: S608 - ours
                [LOST_ID],
            )
    answer = await rotate_all(await with_ring(OLD))
    assert (type(answer), answer["not_opened_by_ring"]) == (Fine, [])


async def test_an_unused_key_may_come_back(with_ring, wrapped):
    """A process with the old ring may wrap with it again, which the next run reports."""
    writer, rotating = await with_ring(OLD, NEW), await with_ring(NEW, OLD)
    first = await rotate_all(rotating)
    await add(writer, 1)
    assert (first["unused"], wrapped()) == ([OLD_ID], {OLD_ID: 1})
    assert "cannot be known" in first["before_removing"]
    assert (await rotate_all(rotating))["tables"][1]["rewrapped"] == 1
    assert (await rotate_all(await with_ring(NEW)))["before_removing"] is None


async def test_writers_with_an_older_ring_go_on(with_ring, wrapped, monkeypatch):
    """They read and write meanwhile; their new keys are counted, then rewrapped."""
    monkeypatch.setattr(rotation, "BATCH", 5)
    writer = await with_ring(OLD, NEW)  # the first step: the new key known, not used yet
    await add(writer, 40)
    rotating = await with_ring(NEW, OLD)
    written, stop = [], asyncio.Event()

    async def write():
        number = 1000
        while not stop.is_set():
            written.extend(await add(writer, 1, number))
            found = await writer.modes["live"].connection_list.access("", written[-1])
            assert found.name == f"B {number}"
            number += 1

    writing = asyncio.create_task(write())
    during = await rotate_all(rotating)
    stop.set()
    await writing
    after = await rotate_all(rotating)
    live = {one["keys"]: one for one in during["tables"] if one["ledger"] == "live"}
    assert live["data_keys"]["rewrapped"] >= 40
    assert len(written) > 0
    assert (wrapped(), after["unused"]) == ({NEW_ID: 40 + len(written)}, [OLD_ID])


async def test_a_destroyed_key_does_not_come_back(with_ring, wrapped, database_url, monkeypatch):
    """Keys erased while batches run stay erased."""
    monkeypatch.setattr(rotation, "BATCH", 3)
    await add(await with_ring(OLD), 60)
    rotating = await with_ring(NEW, OLD)

    async def destroy():
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as owner:
            for _ in range(30):
                await owner.execute(
                    "delete from live.data_keys where key_id ="
                    " (select key_id from live.data_keys order by random() limit 1)"
                )

    await asyncio.gather(destroy(), rotate_all(rotating))
    await rotate_all(rotating)
    assert wrapped() == {NEW_ID: 30}


async def test_a_key_that_does_not_open_is_named(with_ring, wrapped):
    """The missing master key is named, and all other keys are rewrapped."""
    lost = await with_ring(LOST)
    await add(lost, 2)
    old = await with_ring(OLD, LOST)
    await add(old, 3, 10)
    answer = await rotate_all(await with_ring(NEW, OLD))
    live = next(one for one in answer["tables"] if one["ledger"] == "live")
    assert type(answer).__name__ == "Findings"
    assert (answer["not_opened_by_ring"], answer["unused"]) == ([LOST_ID], [OLD_ID])
    assert (live["rewrapped"], live["unopened"], live["older"]) == (3, 2, 2)
    assert wrapped() == {NEW_ID: 3, LOST_ID: 2}


async def test_an_altered_key_is_reported(with_ring, database_url):
    """A wrapping that its master key does not open is named and left as it is."""
    (entity_id,) = await add(await with_ring(OLD), 1)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("update live.data_keys set wrapped = sha256(wrapped)")
    service = await with_ring(NEW, OLD)
    answer = await rotate_all(service)
    assert answer["not_opened_by_ring"] == [OLD_ID]
    assert answer["unused"] == []
    with pytest.raises(KeyUnknown):
        async with service.modes["live"].ledger.transaction() as transaction:
            await transaction.read(entity_stream("live", entity_id))


async def test_secrets_of_before_say_that_there_are_event_keys(with_ring, owner):
    """Until then, a start draws an event key where there is none; afterwards, none does."""
    insert_secrets_of_before(owner, MasterKeys([base64.b64decode(OLD)]))
    known = await (await with_ring(OLD)).secrets.get()
    assert not known.events.since_start
    service = await with_ring(NEW, OLD)
    assert isinstance(await rotate_all(service), Fine)
    assert await (await with_ring(NEW)).secrets.get() == known
    owner.execute("delete from accounts.event_keys")
    with pytest.raises(KeyGone, match="that bind events to the service are gone"):
        await (await with_ring(NEW)).secrets.get()
