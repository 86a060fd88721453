"""A process that cannot open an event key, as its ring of master keys lacks the newest one."""

import base64
from datetime import timedelta
from uuid import uuid4

import msgspec
import pytest
from structlog.testing import capture_logs

from service.claims.wire import ClaimRequest
from service.evidence.binding import bind_events
from service.facts.caller import Caller
from service.ledger import service_keys
from service.ledger.binding import EventKeyLacking, boundary_stream
from service.ledger.sequencer import Sequencer
from tests.ledger.appending import add_event_key, append, approved
from tests.ledger.raw_events import RawEvent, put_into_log
from tests.ledger.samples import CAUSE
from tests.protections import take_off
from tests.world import (
    MASTER_KEY,
    claim_body,
    service_on,
    settings_for,
    world_on,
)

NEW_MASTER_KEY = base64.b64encode(b"\1" * 32).decode()
PLANTED = "insert into accounts.event_keys values (2, true, 'garbage', 'nobody', 'infinity')"


@pytest.fixture
async def lacking(database_url, tmp_path):
    """Return an installation of one process, with the ring of before."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        yield world


@pytest.fixture
async def rotated(database_url, tmp_path):
    """Return another process, whose ring has a new master key, too."""
    ring = f"{NEW_MASTER_KEY},{MASTER_KEY}"
    settings = settings_for(database_url, tmp_path, MASTER_KEYS=ring)
    async with service_on(settings) as one:
        yield one


async def test_a_process_that_cannot_open_an_event_key_signs_nothing_past_its_boundary(
    lacking, rotated, owner, monkeypatch
):
    """What it signs would be set aside after it was answered: it refuses, and says so once."""
    partner, entity_id = await lacking.connected()
    first = lacking.service
    caller = Caller(partner.partner_id, "key_1", "live", 0, False, False, "req_1")

    async def create(service, reference):
        body = msgspec.convert(claim_body(entity_id, reference), ClaimRequest)
        return await service.modes["live"].claims.create(caller, body)

    await create(first, "before")
    await create(rotated, "before too")
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    monkeypatch.setattr("service.evidence.binding.QUIET", timedelta())
    await add_event_key(rotated)
    for one in (first, rotated):
        await one.secrets.read_events()
    await create(first, "still counts")
    assert (await lacking.client.get("/health/ready")).status_code == 200
    await bind_events(rotated.ledger("live"), CAUSE)
    with capture_logs() as lines:
        for reference in ("after", "again"):
            with pytest.raises(EventKeyLacking):
                await create(first, reference)
        ready = await lacking.client.get("/health/ready")
    said = [one["ledger"] for one in lines if one["event"] == "event key missing"]
    assert (said, ready.status_code) == (["live"], 503)
    await create(rotated, "after")
    with pytest.raises(EventKeyLacking):
        await Sequencer(first.ledger("live")).step()
    assert await Sequencer(rotated.ledger("live")).step()
    assert owner.execute("select count(*) from live.set_aside").fetchone() == (0,)


async def test_planted_rows_stop_a_process_only_with_a_forged_boundary(lacking, owner):
    """Whoever can also write to a log denies service, until the row is deleted; no more than that.

    Without the row, nothing is looked for.
    """
    service = lacking.service
    accounts, live = service.accounts, service.ledger("live")
    await append(accounts, approved(uuid4(), 0))
    owner.execute(PLANTED)
    await service.secrets.read_events()
    await append(accounts, approved(uuid4(), 0))
    (await live.binding()).refuse_overtaken()
    forged = RawEvent(boundary_stream("live"), 1, "EventsBound", b"{}")
    append_id = put_into_log(owner, 1, forged)
    (await live.binding()).refuse_overtaken()  # it has no MAC
    mac = b"\2" + bytes(32)
    take_off(owner, "live.events")
    owner.execute("update live.events set mac = %s where append_id = %s", [mac, append_id])
    with pytest.raises(EventKeyLacking):
        (await live.binding()).refuse_overtaken()
    await append(accounts, approved(uuid4(), 0))  # that log names no such key
    owner.execute("delete from accounts.event_keys where key_id = 2")
    await service.secrets.read_events()
    (await live.binding()).refuse_overtaken()
    assert [one.event_key for one in (await live.binding()).boundaries] == [1]
