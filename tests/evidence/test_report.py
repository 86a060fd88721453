"""A report has every event of its subject, by names that events of this service give."""

from uuid import uuid4

import msgspec
import pytest

from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.export.format import EvidenceFault
from service.evidence.replay.log_fault import LogFault
from service.evidence.report.known import is_named
from service.evidence.report.lines import LogPart, ReportReader, ReportSubject
from service.evidence.report.names import Names
from service.facts.partners import PartnerApplied
from service.ledger.events import Meta
from service.ledger.following.parking import NOT_OURS
from tests.evidence.checkpointing import KEY, REHASH
from tests.ledger.raw_events import RawEvent, number_past_the_sequencer, write_foreign
from tests.world import STAFF

MOVED = """
update accounts.events set
    originator_id = gen_random_uuid(),
    state = convert_to(replace(convert_from(state, 'UTF8'), '{}', '{}'), 'UTF8')
where append_id = (select append_id from accounts.log where position = 3)
"""


@pytest.fixture
async def partners(service, checkpoints):
    """Return the partners whose events are at positions 1, 3 and 4, all of them signed."""
    made = [await service.partners.add("One", "a@example.com", STAFF)]
    await checkpoints.make()
    made += [await service.partners.add(name, "b@example.com", STAFF) for name in ("Two", "Three")]
    await checkpoints.make()
    return made


async def lines(accounts, partner_id, last=4):
    """Return the positions of a report's lines."""
    subject, part = ReportSubject("partner_id", partner_id), LogPart("accounts", 0, last)
    reader = ReportReader(Checkpoints(accounts, [KEY], None), part, subject, Names({}))
    return [line.position async for line in reader.lines(lambda _steps: None)]


async def test_nothing_is_denied_of_a_log_in_which_an_event_was_altered(
    accounts, checkpoints, partners, attack
):
    """Only of a log that is what was signed is it said that no event names somebody."""
    subject, (checkpoint, _) = ReportSubject("partner_id", partners[1]), await checkpoints.latest()
    unknown = ReportSubject("partner_id", "ptn_0")
    assert await is_named(accounts, subject, checkpoint)
    assert not await is_named(accounts, unknown, checkpoint)
    attack(MOVED.format(partners[1], "ptn_1"))
    for asked in (subject, unknown):
        with pytest.raises(EvidenceFault, match="are not what was signed"):
            await is_named(accounts, asked, checkpoint)


async def test_names_are_those_that_this_service_recorded(service, partners, owner):
    """An event of somebody else names nobody: without a number it is left, with one a fault."""
    accounts = service.accounts
    meta = Meta(service.clock(), STAFF.actor, STAFF.request_id, accounts.name)
    said = PartnerApplied(partner_id=partners[1], name="Forged", email="f@example.com")
    state = msgspec.json.encode({"class_version": 1, "meta": meta, "data": said})
    (append_id,) = await write_foreign(accounts, RawEvent(uuid4(), 1, "PartnerApplied", state))
    assert (await Names.read(accounts)).of_id(partners[1]) == "Two"
    position = number_past_the_sequencer(owner, append_id)
    with pytest.raises(LogFault, match=f"position {position}: {NOT_OURS}"):
        await Names.read(accounts)


async def test_no_event_is_hidden_by_altering_it_in_place(accounts, partners, attack):
    """What was not chosen was read, too: each event under the checkpoint is what was signed."""
    assert await lines(accounts, partners[1]) == [3]
    attack(MOVED.format(partners[1], "ptn_0"))
    for subject in partners:
        with pytest.raises(EvidenceFault, match="the first 4 events of accounts are not what was"):
            await lines(accounts, subject)
    attack(REHASH.format(3))
    with pytest.raises(LogFault, match="the events are not those that were signed"):
        await lines(accounts, partners[0])
    assert await lines(accounts, partners[0], 2) == [1]  # of the checkpoint before
