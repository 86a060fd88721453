"""What was set aside is looked at, and what this service wrote is taken back."""

from uuid import uuid4

import pytest

from service.core.ids import stream_id
from service.evidence.set_aside import TakeBackRefused, newest_set_aside, take_back
from service.facts.lineages import EventTakenBack
from service.ledger.following.status import foreign as foreign_of
from tests.ledger.raw_events import RawEvent, append_with_macs
from tests.numbering import number
from tests.world import STAFF

REASON = "an insider hid it"
TOPICS = (
    "select e.topic from accounts.log as l join accounts.events as e using (append_id)"
    " order by l.position"
)
HIDE = "select accounts.set_aside_events(array_agg(append_id)) from accounts.pending"


async def test_what_this_service_wrote_is_taken_back_where_its_stream_stands(service, owner):
    """Once, recorded with who and why; what others wrote, or what was done again, is not."""
    accounts = service.accounts
    partner_id = await service.partners.add("Partner", "p@example.com", STAFF)
    await number(accounts)
    await service.partners.approve(partner_id, STAFF)
    async with accounts.transaction() as transaction:
        forged = RawEvent(uuid4(), 1, "PartnerApproved", b"{}")
        await append_with_macs(transaction, [forged], [bytes(33)])
    owner.execute(HIDE)
    await service.partners.approve(partner_id, STAFF)
    owner.execute(HIDE)
    again, foreign, hidden = await newest_set_aside(accounts)
    assert [one.is_ours for one in (hidden, foreign, again)] == [True, False, True]
    assert [one.mac for one in (hidden, foreign, again)] == ["holds", "does not hold", "holds"]
    taken = await take_back(accounts, hidden.set_aside_id, REASON, STAFF)
    assert owner.execute(TOPICS).fetchall() == [
        ("PartnerApplied",),
        ("PartnerApproved",),
        ("EventTakenBack",),
    ]
    for set_aside_id, why in (
        (hidden.set_aside_id, "it was taken back already, at 2"),
        (again.set_aside_id, "version 3 is due"),
        (foreign.set_aside_id, "did not write it"),
        (99, "set nothing aside"),
    ):
        with pytest.raises(TakeBackRefused, match=why):
            await take_back(accounts, set_aside_id, REASON, STAFF)
    assert (taken.topic, taken.version) == ("PartnerApproved", 2)
    listed = await newest_set_aside(accounts)
    assert [one.taken_back_at for one in listed] == [None, None, taken.taken_back_at]
    assert (await foreign_of(accounts)).set_aside_lately == 2
    (state,) = owner.execute(
        "select convert_from(state, 'UTF8')::jsonb -> 'data' from accounts.events where topic = %s",
        [EventTakenBack.__name__],
    ).fetchone()
    assert (state["reason"], state["set_aside_number"]) == (REASON, hidden.set_aside_id)


async def test_who_writes_that_an_event_was_taken_back_is_not_believed(service, owner):
    """Without our MAC it is not taken back, and what was set aside is listed all the same."""
    accounts = service.accounts
    await service.partners.add("Partner", "p@example.com", STAFF)
    owner.execute(HIDE)
    (hidden,) = await newest_set_aside(accounts)
    place = stream_id("taken-back", "accounts", str(hidden.set_aside_id))
    async with accounts.transaction() as transaction:
        forged = RawEvent(place, 1, EventTakenBack.__name__, b"{}")
        await append_with_macs(transaction, [forged], [bytes(33)])
    assert [one.taken_back_at for one in await newest_set_aside(accounts)] == [None]


async def test_an_event_that_stands_where_another_was_set_aside_hides_none(service, owner):
    """Only what stands in the log as it was is taken back: a copy of its MAC is not enough."""
    accounts = service.accounts
    await service.partners.add("Partner", "p@example.com", STAFF)
    owner.execute(HIDE)
    event = "originator_id, originator_version, topic, state, mac from accounts.set_aside"
    stream, version, topic, state, mac = owner.execute(f"select {event}").fetchone()
    for one in (RawEvent(stream, version, topic, b'{"forged": 1}'), None):
        async with accounts.transaction() as transaction:
            again = one or RawEvent(stream, version, topic, state)
            await append_with_macs(transaction, [again], [mac])
        if one is not None:
            owner.execute(HIDE)
    assert (await foreign_of(accounts)).set_aside_lately == 1
