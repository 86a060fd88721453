"""The stock recorder of the `eventsourcing` library reads our log through a view (decision 7)."""

import asyncio
from urllib.parse import urlsplit

import pytest
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore

from service.ledger.sequencer import Sequencer
from service.partners.events import partner_stream
from tests.ledger.samples import CAUSE


@pytest.fixture
def recorder(database_url):
    """Answer a stock recorder that is never asked to make its table."""
    url = urlsplit(database_url)
    datastore = PostgresDatastore(
        dbname=url.path[1:],
        host=url.hostname,
        port=str(url.port),
        user=url.username,
        password=url.password,
        schema="accounts",
        pool_open_timeout=5,
    )
    with datastore:
        yield PostgresApplicationRecorder(datastore, events_table_name="stored_events")


async def test_the_stock_recorder_reads_streams_and_the_numbered_log(service, recorder):
    """It finds each stream's events, and every numbered event under its position."""
    ids = [await service.partners.add(f"P{n}", f"p{n}@example.com", CAUSE) for n in range(3)]
    for partner_id in ids:
        await service.partners.approve(partner_id, CAUSE)
    stream = partner_stream(ids[1])
    before = await asyncio.to_thread(recorder.max_notification_id)
    await Sequencer(service.accounts.database).step()
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
