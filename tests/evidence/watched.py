"""A ledger of claims whose actors are looked at by passes that are made by hand."""

from datetime import timedelta
from uuid import uuid4

import pytest

from service.core.ids import derived_id
from service.evidence.checkpoints.finding import beside_finding
from service.evidence.log_findings import ACTORS
from service.evidence.verify import slices as slices_module
from service.evidence.verify.confirm import confirmed
from service.evidence.verify.people import People
from service.evidence.verify.slices import Slices
from service.facts.claims import ClaimStageChanged
from service.facts.entities import EntityRegistered, entity_stream
from service.ledger.events import Cause
from service.ledger.writing import Append
from tests.evidence.checkpointing import KEY
from tests.numbering import number

DAY = 86_400
NOBODY = f"partner:ptn_x/{derived_id('key', 'x')}"

WAITS = """
with one as (
    insert into {0}.events (originator_id, originator_version, topic, state, mac)
    values (coalesce(%s, gen_random_uuid()), 1, %s, %s, %s) returning append_id
)
insert into {0}.pending select append_id from one returning append_id
"""
"""Has an event wait, whose stream, topic, state and MAC anybody chooses."""


async def by_parts(tried, parts, *arguments):
    """Confirm a log by so many parts, and keep whether it was."""
    tried.append(await confirmed(*arguments, reading=None, parts=parts))
    return tried[-1]


class Watched:
    """A ledger of claims, whose passes are made by hand."""

    def __init__(self, service):
        self.live, self.days = service.modes["live"].ledger, 0
        self.accounts, self.staff = service.accounts, service.staff
        self.people = People(service.accounts)
        self.staff_id = ""
        began = self.live.clock()
        self.live.clock = lambda: began + timedelta(days=self.days)

    async def act(self, actor, event=None, stream=None, *public_ids):
        """Append an event in somebody's name, and number it."""
        await self.append(actor, event, stream, *public_ids)
        await number(self.live)

    async def append(self, actor, event=None, stream=None, *public_ids):
        """Append an event in somebody's name, which waits for its number."""
        events, cause = [event or ClaimStageChanged("clm_1", "settled")], Cause(actor, "req_1")
        async with self.live.transaction() as transaction:
            one = Append(stream or uuid4(), 0, events, cause, public_ids=public_ids)
            await transaction.append(one)

    async def verify(self, people=None):
        """Make a whole pass on another day; return how many slices it took, and what is noted."""
        self.days, count = self.days + 1, 0
        while await Slices(self.live, [KEY], DAY, people or self.people).slice():
            count += 1
        return count, await self.noted()

    async def noted(self):
        """Return what is noted of actors."""
        return (await beside_finding(self.live))[ACTORS]


@pytest.fixture
async def watched(service, monkeypatch):
    """Return a ledger with six events of people who could act, read two at a time."""
    monkeypatch.setattr(slices_module, "SLICE_SECONDS", -1)
    monkeypatch.setattr(slices_module, "EVENTS_MAX", 2)
    one = Watched(service)
    staff_id = await service.staff.add("t@example.com", Cause("system:installation", "r"))
    one.staff_id = staff_id
    await one.act("customer:ent_1")
    registered = EntityRegistered("ent_1", established=True)
    await one.act(f"staff:{staff_id}", registered, entity_stream("live", "ent_1"), "ent_1")
    for actor in (f"staff:{staff_id}", "system:sandbox", "customer:per_1", "customer:ent_1"):
        await one.act(actor)
    return one
