"""Who is calling: the last events of all partners that are asked for at once, and what was read."""

import asyncio

import pytest

from projections.partners import reader
from projections.partners.reader import PartnersReader
from service.core.clock import system_clock
from service.facts.partners import partner_stream
from service.ledger.binding import UnboundEvent
from service.ledger.database import LedgerUnavailable
from tests.ledger.decoded import decoded
from tests.world import STAFF


async def test_requests_at_once_are_each_answered_with_their_own_partner(world):
    """Rows come back in the order asked, with gaps where a partner does not exist."""
    partners = [await world.partner() for _ in range(3)]
    ids = [partner.partner_id for partner in partners]
    asked = [*ids[:2], "ptn_unknown", *reversed(ids)]
    found = await asyncio.gather(*map(world.service.partner_list.current, asked))

    assert [one and one.partner_id for one in found] == [*ids[:2], None, *reversed(ids)]
    for partner, known in zip(partners, found[:2], strict=False):
        keys = {token.split(".")[1]: mode for mode, token in partner.keys.items()}
        assert {key_id: key.mode for key_id, key in known.keys.items()} == keys


@pytest.fixture
def statements(monkeypatch):
    """Return what counts a service's reads of accounts: the arguments of each."""

    def count(service):
        reads, asked = service.accounts.database.reads, []
        fetch = reads.fetch

        async def counted(sql, *args):
            asked.append(args)
            return await fetch(sql, *args)

        monkeypatch.setattr(reads, "fetch", counted)
        return asked

    return count


async def test_many_requests_of_one_partner_share_reads(world, statements):
    """While a look-up is under way the others wait, then go together; the events are read once."""
    partner = await world.partner()
    asked = statements(world.service)
    current = world.service.partner_list.current
    await asyncio.gather(*(current(partner.partner_id) for _ in range(64)))
    look_ups = [streams for streams, *topics in asked if not topics]

    assert sum(map(len, look_ups)) == 64
    assert len(look_ups) <= 2
    assert len(asked) == len(look_ups) + 1


async def test_requests_that_share_a_read_fail_with_it(in_memory, monkeypatch):
    """Where PostgreSQL does not answer, none waits for others' deadlines before its own."""
    partner = await in_memory.partner()
    service = in_memory.service
    reads, failed = service.accounts.database.reads, []
    fetch = reads.fetch

    async def failing(sql, *args):
        if len(args) == 1:  # the look-up
            return await fetch(sql, *args)
        await asyncio.sleep(0)
        failed.append(args)
        raise LedgerUnavailable("no answer in time")

    with monkeypatch.context() as frozen:
        frozen.setattr(reads, "fetch", failing)
        asked = [service.partner_list.current(partner.partner_id) for _ in range(64)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)

    assert {type(outcome) for outcome in outcomes} == {LedgerUnavailable}
    assert len(failed) <= 2  # the first look-up has one request, the second all others
    assert await service.partner_list.current(partner.partner_id) is not None


async def test_a_key_is_revoked_from_the_next_request_on(world):
    """Reads that were asked for before the revocation do not answer for a later request."""
    partner = await world.partner()
    key_id = partner.keys["live"].split(".")[1]
    current = world.service.partner_list.current
    earlier = [asyncio.create_task(current(partner.partner_id)) for _ in range(8)]
    await world.service.partners.revoke_key(partner.partner_id, key_id, STAFF)
    known = await current(partner.partner_id)
    await asyncio.gather(*earlier)

    assert known.keys[key_id].has_ended(system_clock())


async def test_memory_is_bounded(in_memory, statements, monkeypatch):
    """What was pushed out is read again; what was not is looked up alone."""
    monkeypatch.setattr(reader, "KNOWN_MAX", 2)
    first, *others = [await in_memory.partner() for _ in range(3)]
    current = PartnersReader(in_memory.service.accounts).current
    asked = statements(in_memory.service)
    for partner, reads in [(first, 2), (first, 1), *[(one, 2) for one in others], (first, 2)]:
        asked.clear()
        known = await current(partner.partner_id)
        assert (known.partner_id, len(asked)) == (partner.partner_id, reads)


async def test_keys_are_bounded_of_all_that_are_known(in_memory, statements, monkeypatch):
    """A partner with too many keys is read on each time, and pushes out no other."""
    large, *others = [await in_memory.partner() for _ in range(3)]  # each has two keys
    for _ in range(3):
        await in_memory.service.partners.issue_key(large.partner_id, "test", STAFF)
    known = PartnersReader(in_memory.service.accounts)
    asked = statements(in_memory.service)

    async def reads(*partners):
        counted = []
        for partner in partners:
            asked.clear()
            found = await known.current(partner.partner_id)
            assert found.keys.keys() >= {one.split(".")[1] for one in partner.keys.values()}
            counted.append(len(asked))
        return counted

    monkeypatch.setattr(reader, "PARTS_MAX", 23)
    assert await reads(*others, large, large, *others) == [2, 2, 2, 2, 1, 1]
    monkeypatch.setattr(reader, "PARTS_MAX", 24)
    assert await reads(large, large, *others) == [2, 1, 1, 1]
    monkeypatch.setattr(reader, "SHARES", 1)
    monkeypatch.setattr(reader, "PARTS_MAX", 8)
    await in_memory.service.partners.change_settings(large.partner_id, STAFF, return_link=True)
    assert await reads(large, large, *reversed(others)) == [2, 1, 2, 2]


async def test_an_event_of_somebody_else_is_not_believed(in_memory):
    """Nor is what was known before it: 503, until it is set aside."""
    partner = await in_memory.partner()
    service, tables = in_memory.service, in_memory.service.accounts.database.tables
    known = await service.partner_list.current(partner.partner_id)
    await service.partners.revoke(partner.partner_id, STAFF)
    stream = partner_stream(partner.partner_id)
    (revoked,) = tables.where("events", originator_id=stream, topic="PartnerRevoked")
    revoked.update(topic="PartnerApproved", mac=bytes(33))
    with pytest.raises(UnboundEvent):
        await service.partner_list.current(partner.partner_id)
    tables["events"].remove(revoked)

    assert await service.partner_list.current(partner.partner_id) == known


async def test_only_what_follows_the_known_is_decoded(in_memory):
    """However many events a partner has, a change costs every caller after it what it is."""
    partner = await in_memory.partner()
    commands, current = in_memory.service.partners, in_memory.service.partner_list.current
    for number in range(50):
        await commands.change_settings(partner.partner_id, STAFF, return_link=not number % 2)
    await current(partner.partner_id)
    await commands.change_settings(partner.partner_id, STAFF, return_link=True)
    with decoded() as topics:
        assert (await current(partner.partner_id)).return_link
    assert topics == ["PartnerSettingsChanged"]


async def test_what_was_taken_back_is_not_known(in_memory):
    """Another event may have the append_id of the last one, after the database was set back."""
    partner = await in_memory.partner()
    service, tables = in_memory.service, in_memory.service.accounts.database.tables
    key_id = partner.keys["live"].split(".")[1]
    await service.partners.change_settings(partner.partner_id, STAFF, return_link=True)
    assert (await service.partner_list.current(partner.partner_id)).return_link
    taken_back = tables["events"].pop()
    await service.partners.revoke_key(partner.partner_id, key_id, STAFF)
    tables["events"][-1].update(append_id=taken_back["append_id"])
    known = await service.partner_list.current(partner.partner_id)
    assert (known.return_link, known.keys[key_id].revoked) == (False, True)
