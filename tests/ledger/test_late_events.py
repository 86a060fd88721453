"""Events by an earlier key that commit after that key was retired, and were begun before."""

from datetime import timedelta

import pytest

from service.evidence.binding import BindingRefused, bind_events
from service.evidence.checkpoints.signing import CLOCKS_DIFFER_MAX
from service.facts.connections import EntityConnected, connection_stream
from service.ledger import service_keys
from service.ledger.binding import UnboundEvent
from service.ledger.decoding import StoredEvent
from service.ledger.events import Meta
from service.ledger.folding import Folding
from tests.ledger.appending import add_event_key
from tests.ledger.raw_events import RawEvent, append_with_macs
from tests.ledger.samples import CAUSE
from tests.numbering import number

pytestmark = pytest.mark.followed

LENGTH = Folding(0, lambda begin, events: begin + len(events))


@pytest.fixture
async def rotated(world, monkeypatch):
    """Return an installation with a second event key; what is begun below is by the first."""
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    monkeypatch.setattr("service.evidence.binding.QUIET", timedelta())
    monkeypatch.setattr("service.ledger.ledger.UNBOUND_SECONDS", 0)
    return world


async def rotate(world):
    """Have another key sign."""
    await add_event_key(world.service)
    await world.service.secrets.read_events()


def dated(ledger, behind):
    """Date what happens from now on by a clock that is so much behind."""
    clock = ledger.clock
    ledger.clock = lambda: clock() - behind


def connection(ledger, partner_id, entity_id):
    """Return what says that a business gave a partner access, as nobody has said."""
    stream, event = connection_stream(ledger.name, partner_id, entity_id), EntityConnected
    meta = Meta(ledger.clock(), CAUSE.actor, CAUSE.request_id, ledger.name)
    said = event(partner_id=partner_id, entity_id=entity_id, via="staff")
    return RawEvent(stream, 1, event.__name__, ledger.codec.encode(stream, 1, said, meta, None))


@pytest.mark.parametrize("behind", [0, 5])
async def test_what_commits_late_by_a_retired_key_is_believed_by_nobody(
    rotated, owner, monkeypatch, behind
):
    """Not while it waits for a number, either; what was numbered before counts as it did.

    Repeating the command waits for it, too, though its clock is seconds behind PostgreSQL's.
    """
    live, partner = rotated.service.ledger("live"), await rotated.partner()
    dated(live, timedelta(seconds=behind))
    connected, victim = await partner.connected_entity(), await rotated.entity()
    forged, first = connection(live, partner.partner_id, victim), await live.event_keys()
    await number(live)
    await rotate(rotated)
    monkeypatch.setattr("service.evidence.binding.ENDED_SECONDS_MAX", 0)
    async with live.transaction() as late:
        (append_id,) = await append_with_macs(late, [forged], [first.mac(*forged)])
        for _ in ("recorded", "repeated"):
            with pytest.raises(BindingRefused, match=r"backend \d+ of claim_ledger_live is open"):
                await bind_events(live, CAUSE)
    with owner.transaction():
        owner.execute("select from live.head for update")
        stored = StoredEvent(0, append_id, *forged, first.mac(*forged))
        assert await live.ours([stored]) == []
        for read in (live.read(forged.stream_id), live.fold(forged.stream_id, LENGTH)):
            with pytest.raises(UnboundEvent):
                await read
        async with live.transaction() as transaction:
            with pytest.raises(UnboundEvent):
                await transaction.read(forged.stream_id)
        assert (await partner.claim(victim)).status_code == 503
        assert (await partner.claim(connected)).status_code == 201
    assert not await bind_events(live, CAUSE)
    aside = "select append_id from live.set_aside"
    assert owner.execute(aside).fetchall() == [(append_id,)]
    assert (await partner.claim(victim)).status_code == 403


async def test_a_key_is_retired_once_no_transaction_is_open_that_began_before(rotated):
    """Of this ledger: those of others, and those that have written nothing, keep nobody waiting."""
    test, live = rotated.service.ledger("test"), rotated.service.ledger("live")
    await rotate(rotated)
    forged = connection(test, "ptn_1", "ent_1")
    async with test.transaction() as other, live.transaction() as idle:
        await append_with_macs(other, [forged], [(await test.event_keys()).mac(*forged)])
        await idle.exists(forged.stream_id)
        assert await bind_events(live, CAUSE)
    assert (await live.binding()).oldest == 2


@pytest.mark.parametrize("is_rotated", [False, True])
async def test_a_key_that_was_retired_waits_for_nobody_who_began_later(
    rotated, monkeypatch, is_rotated
):
    """Nor does a log all of whose events have a MAC: there is nothing to do, which is said."""
    live = rotated.service.ledger("live")
    if is_rotated:
        await rotate(rotated)
    dated(live, CLOCKS_DIFFER_MAX + timedelta(seconds=1))
    assert await bind_events(live, CAUSE) is is_rotated
    monkeypatch.setattr("service.evidence.binding.ENDED_SECONDS_MAX", 0)
    later = connection(live, "ptn_1", "ent_1")
    async with live.transaction() as open_:
        await append_with_macs(open_, [later], [(await live.event_keys()).mac(*later)])
        assert not await bind_events(live, CAUSE)
