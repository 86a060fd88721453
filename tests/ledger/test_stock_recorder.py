"""The stock recorder of the `eventsourcing` library reads our log through a view."""

import asyncio
import re
import threading
from pathlib import Path

import pytest
from eventsourcing.persistence import PersistenceError, StoredEvent
from eventsourcing.utils import clear_topic_cache
from psycopg.conninfo import conninfo_to_dict

from service.evidence.replay.independent_recorder import stock_recorder
from service.facts.partners import partner_stream
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from tests.ledger.samples import CAUSE
from tests.patience import PATIENCE_SECONDS

LOCKS = """
select l.mode from pg_locks as l
join pg_stat_activity as a using (pid)
join pg_class as c on c.oid = l.relation
where a.application_name = 'claim-ledger independent' and c.relnamespace = 'accounts'::regnamespace
"""
(LINES,) = re.findall(
    r"```python\n(from uuid.*?)```", Path("docs/events.md").read_text(), re.DOTALL
)
COUNT = queries("service.evidence.replay").size


class StopReading(Exception):
    """Enough was printed."""


@pytest.fixture
def recorder(service):
    """Return a stock recorder that cannot write, and is never asked to make its table."""
    with stock_recorder(service.accounts.database.url, "accounts", connections=2) as one:
        yield one


async def test_the_stock_recorder_reads_streams_and_the_numbered_log(service, recorder):
    """It finds each stream's events, and every numbered event under its position."""
    ids = [await service.partners.add(f"P{n}", f"p{n}@example.com", CAUSE) for n in range(3)]
    for partner_id in ids:
        await service.partners.approve(partner_id, CAUSE)
    stream = partner_stream(ids[1])
    before = await asyncio.to_thread(recorder.max_notification_id)
    await Sequencer(service.accounts).step()
    found = await asyncio.to_thread(recorder.select_events, stream)
    after = await asyncio.to_thread(recorder.select_events, stream, gt=1)
    notes = await asyncio.to_thread(recorder.select_notifications, 1, 4)
    rest = await asyncio.to_thread(recorder.select_notifications, 5, 10)
    assert [one.topic for one in found] == ["PartnerApplied", "PartnerApproved"]
    assert [one.originator_version for one in after] == [2]
    assert [note.id for note in (*notes, *rest)] == [1, 2, 3, 4, 5, 6]
    assert [note.topic for note in notes] == ["PartnerApplied"] * 3 + ["PartnerApproved"]
    assert (before, await asyncio.to_thread(recorder.max_notification_id)) == (None, 6)


async def test_what_is_not_numbered_yet_is_not_notified(service, recorder):
    """A committed event without a position is in its stream, and follows no position.

    Asked from nowhere (`start=None`) the recorder does not filter at all: ask from a position on,
    as its own subscriptions do.
    """
    partner_id = await service.partners.add("P", "p@example.com", CAUSE)
    found = await asyncio.to_thread(recorder.select_events, partner_stream(partner_id))
    notes = await asyncio.to_thread(recorder.select_notifications, 1, 10)
    assert len(found) == 1
    assert notes == []


async def test_a_part_of_a_stream_is_selected(service, recorder):
    """From a version on, up to one, newest first, and no more than so many."""
    partner_id = await service.partners.add("P", "p@example.com", CAUSE)
    for return_link in (True, False, True, False):
        await service.partners.change_settings(partner_id, CAUSE, return_link=return_link)
    stream = partner_stream(partner_id)

    async def versions(**asked):
        found = await asyncio.to_thread(recorder.select_events, stream, **asked)
        return [one.originator_version for one in found]

    every = await versions()
    assert len(every) >= 4
    assert every == list(range(1, len(every) + 1))
    assert await versions(gt=1) == every[1:]
    assert await versions(lte=3) == [1, 2, 3]
    assert await versions(gt=1, lte=3) == [2, 3]
    assert await versions(desc=True) == every[::-1]
    assert await versions(desc=True, limit=2) == every[::-1][:2]
    assert await versions(gt=1, lte=4, desc=True, limit=1) == [4]
    assert await versions(gt=len(every)) == []


async def test_a_part_of_the_log_is_selected(service, recorder):
    """From a position on or after it, up to one, of some topics, and no more than so many."""
    for number in range(3):
        partner_id = await service.partners.add(f"P{number}", f"p{number}@example.com", CAUSE)
        await service.partners.approve(partner_id, CAUSE)
    await Sequencer(service.accounts).step()

    async def positions(*asked, **more):
        found = await asyncio.to_thread(recorder.select_notifications, *asked, **more)
        return [one.id for one in found]

    assert await positions(None, 10) == [1, 2, 3, 4, 5, 6]
    assert await positions(3, 10) == [3, 4, 5, 6]
    assert await positions(3, 10, inclusive_of_start=False) == [4, 5, 6]
    assert await positions(2, 10, stop=4) == [2, 3, 4]
    assert await positions(2, 2) == [2, 3]
    assert await positions(1, 10, topics=["PartnerApproved"]) == [2, 4, 6]
    assert await positions(2, 1, 5, ["PartnerApplied"], inclusive_of_start=False) == [3]
    assert await positions(7, 10) == []
    assert await asyncio.to_thread(recorder.max_notification_id) == 6


async def test_a_subscription_receives_what_is_appended_meanwhile(service, recorder):
    """All of it, in the order of the log, without a gap and without being asked again.

    Appends go on at once with each other and with two sequencers.
    """
    total, received = 60, []
    subscription = recorder.subscribe(gt=0)

    def receive():
        with subscription:
            for notification in subscription:
                received.append(notification)
                if len(received) == total:
                    break

    reader = threading.Thread(target=receive)
    reader.start()
    appending = [
        asyncio.create_task(service.partners.add(f"P{n}", f"p{n}@example.com", CAUSE))
        for n in range(total)
    ]
    sequencers = [Sequencer(service.accounts) for _ in range(2)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        while reader.is_alive():
            await asyncio.gather(*(one.step() for one in sequencers))
            await asyncio.sleep(0.001)
    ids = await asyncio.gather(*appending)
    assert [one.id for one in received] == list(range(1, total + 1))
    assert {one.originator_id for one in received} == {partner_stream(each) for each in ids}


async def test_the_documents_lines_follow_a_log(service, owner, monkeypatch):
    """A plain ApplicationSubscription of the library gives every event, also one appended later.

    The lines are those of docs/events.md, whose output is collected here.
    """
    names = {"dbname": "DBNAME", "host": "HOST", "port": "PORT", "user": "USER"}
    given = conninfo_to_dict(service.accounts.database.url)
    for name, variable in (names | {"password": "PASSWORD"}).items():
        monkeypatch.setenv(f"POSTGRES_{variable}", str(given.get(name, "")))
    monkeypatch.setenv("POSTGRES_SCHEMA", "accounts")
    monkeypatch.setenv("PGOPTIONS", "-c default_transaction_read_only=on")
    printed, followed = [], threading.Event()

    def collect(*values):
        printed.append(values)
        followed.set()
        if len(printed) == 2:
            raise StopReading

    first = await service.partners.add("P", "p@example.com", CAUSE)
    await Sequencer(service.accounts).step()
    try:
        reading = asyncio.create_task(asyncio.to_thread(exec, LINES, {"print": collect}))
        await asyncio.to_thread(followed.wait, PATIENCE_SECONDS)
        await service.partners.approve(first, CAUSE)
        await Sequencer(service.accounts).step()
        # The library reads before it listens, and misses what is notified in between.
        while not (await asyncio.wait([reading], timeout=0.5))[0]:
            owner.execute("notify stored_events")
        with pytest.raises(StopReading):
            await reading
    finally:
        clear_topic_cache()  # these classes are the document's
    assert [(number, topic) for number, topic, _ in printed] == [
        (1, "PartnerApplied"),
        (2, "PartnerApproved"),
    ]
    assert {data["partner_id"] for _, _, data in printed} == {first}


async def test_reading_holds_no_lock_that_an_append_waits_for(service, recorder, owner):
    """While it reads, its sessions hold the locks of reading and no other."""
    await service.partners.add("P", "p@example.com", CAUSE)
    await Sequencer(service.accounts).step()
    stop, seen = threading.Event(), []

    def read():
        while not stop.is_set():
            recorder.select_notifications(1, 10)
            recorder.select_events(partner_stream("ptn_x"))
            recorder.max_notification_id()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(seen) < 50:
                seen += owner.execute(LOCKS).fetchall()
                await asyncio.sleep(0)
    finally:
        stop.set()
        reader.join()
    assert set(seen) == {("AccessShareLock",)}


async def test_a_subscription_waits_for_its_topics(service, recorder):
    """Told by NOTIFY, it gives what is of the topics asked for, from a position on."""
    first = await service.partners.add("A", "a@example.com", CAUSE)
    await service.partners.approve(first, CAUSE)
    await Sequencer(service.accounts).step()
    second = await service.partners.add("B", "b@example.com", CAUSE)
    await service.partners.approve(second, CAUSE)
    with recorder.subscribe(gt=2, topics=["PartnerApproved"]) as subscription:
        waiting = asyncio.create_task(asyncio.to_thread(next, subscription))
        await asyncio.sleep(0.3)
        early = waiting.done()
        await Sequencer(service.accounts).step()
        found = await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    assert not early
    assert (found.id, found.originator_id) == (4, partner_stream(second))


async def test_nothing_is_written_through_it(service, recorder):
    """Its sessions are read-only: an insert fails, and so does making its table."""
    before = await service.accounts.database.reads.fetchrow(COUNT)
    event = StoredEvent(partner_stream("ptn_x"), 1, "PartnerApplied", b"{}")
    for attempt in (recorder.create_table, lambda: recorder.insert_events([event])):
        with pytest.raises(PersistenceError):
            await asyncio.to_thread(attempt)
    readonly = await asyncio.to_thread(_setting, recorder, "transaction_read_only")
    assert readonly == "on"
    assert await service.accounts.database.reads.fetchrow(COUNT) == before


def _setting(recorder, name):
    with recorder.datastore.get_connection() as connection:
        return connection.execute(f"show {name}").fetchone()[name]
