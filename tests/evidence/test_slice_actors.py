"""The worker looks at who the events of a log are of, a slice at a time."""

import asyncio

from service.evidence.checkpoints.finding import finding
from service.evidence.log_findings import NOTHING_FOUND, LogFinding
from service.evidence.verdict import Fault
from service.evidence.verify import people as people_module
from service.evidence.verify import slice_beside
from service.evidence.verify.people import People
from service.evidence.verify.slices import Slices
from service.ledger.events import Cause
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY
from tests.evidence.watched import DAY, NOBODY
from tests.numbering import number
from tests.world import settings_for, world_on

ROW = "update live.log_findings set {} where kind = 'actors'"


async def test_a_forged_actor_is_found_and_stays_found(watched):
    """With how many there are, and the first one; what holds beside it is signed on."""
    assert await watched.verify() == (3, NOTHING_FOUND)
    await watched.act(NOBODY)
    await watched.act("customer:ent_2")
    await watched.act("staff:stf_x")
    for _ in range(2):
        _, found = await watched.verify()
        assert (found.faults, found.fault_position) == (3, 7)
        assert found.fault == (
            f"The event at position 7 is not of {NOBODY}: no such key was issued."
        )
    assert (await finding(watched.live)).fault is None


def test_the_first_finding_of_a_pass_is_the_one_that_is_told():
    """However many slices it has; what the next pass does not find is gone at its end."""
    found = NOTHING_FOUND
    for position, count in ((3, 2), (9, 1)):
        found = found.with_faults(Fault(position, f"at {position}"), count)
    assert found == LogFinding(0, 3, 3, 3, "at 3")
    again = found.ended().begun()
    assert again.with_faults(Fault(9, "at 9"), 1) == LogFinding(0, 1, 3, 9, "at 9")
    assert again.ended() == NOTHING_FOUND


async def test_it_is_noted_as_soon_as_its_slice_ends(watched):
    """And what the pass before has found stays until this one ends."""
    await watched.verify()
    for _ in range(3):
        await watched.act(NOBODY)
    watched.days += 1
    slices = Slices(watched.live, [KEY], DAY, watched.people)
    counts = []
    while await slices.slice():
        counts.append((await watched.noted()).faults)
    assert counts == [0, 0, 0, 2, 3]
    watched.days += 1
    await slices.slice()
    assert (await watched.noted())[:3] == (2, 0, 3)


async def test_what_somebody_else_noted_is_a_finding_until_a_whole_pass(watched, owner):
    """It clears nothing before a pass has looked at everything again."""
    await watched.verify()
    for change in ("faults = 5", "seen = 1", "mac = null, faults = 1"):
        owner.execute(ROW.format(change))
        found = await watched.noted()
        assert (found.faults, "was not written by this service" in found.fault) == (1, True)
        assert (await watched.verify())[1] == NOTHING_FOUND


async def test_a_row_that_is_gone_is_a_finding_until_it_is_back(watched, owner):
    """Passes go on without it; once it is there again, a whole one settles it."""
    await watched.verify()
    for change in (ROW.format("kind = 'x'"), "delete from live.log_findings where kind = 'actors'"):
        owner.execute(change)
        found = await watched.noted()
        assert (found.faults, "is gone" in found.fault) == (1, True)
        assert (await watched.verify())[1] == found
        owner.execute("delete from live.log_findings where kind = 'x'")
        owner.execute("insert into live.log_findings (kind) values ('actors')")
        assert (await watched.verify())[1] == NOTHING_FOUND
    await watched.act(NOBODY)
    assert (await watched.verify())[1].faults == 1


async def test_a_row_taken_back_in_the_midst_of_a_pass_waits_for_the_next_one(watched, owner):
    """What was not looked at from the first event on says nothing."""
    await watched.act(NOBODY)
    watched.days += 1
    slices = Slices(watched.live, [KEY], DAY, watched.people)
    await slices.slice()
    columns = "position = 0, seen = 0, faults = 0, fault_position = null, fault = null, mac = null"
    owner.execute(ROW.format(columns))
    while await slices.slice():
        pass
    assert await watched.noted() == NOTHING_FOUND
    assert (await watched.verify())[1].faults == 1


async def test_who_could_act_is_read_in_slices_too(watched, service, monkeypatch):
    """As many positions at once, so much time: a pass begins once all was read."""
    monkeypatch.setattr(people_module, "STEP", 1)
    monkeypatch.setattr(slice_beside, "PEOPLE_SECONDS", -1)
    await service.staff.add("u@example.com", Cause("system:installation", "r"))
    staff_id = await service.staff.add("v@example.com", Cause("system:installation", "r"))
    await number(service.accounts)
    await watched.act(f"staff:{staff_id}")
    count, found = await watched.verify(People(service.accounts))
    assert (count > 4, found) == (True, NOTHING_FOUND)


async def test_who_could_act_is_read_anew_where_accounts_went_back(service, owner):
    """A restore can take both back; what was known of lost events is forgotten."""
    people = People(service.accounts)
    staff_id = await service.staff.add("u@example.com", Cause("system:installation", "r"))
    await number(service.accounts)
    assert await people.catch_up(0)
    assert staff_id in people.known.staff
    for table in ("events", "log", "head"):
        owner.execute(f"alter table accounts.{table} disable trigger user")
    owner.execute("update accounts.head set size = size - 1")
    owner.execute("delete from accounts.log where position > (select size from accounts.head)")
    assert await people.catch_up(0)
    assert staff_id not in people.known.staff


async def test_a_pass_waits_for_no_second_connection_of_its_kind(database_url, tmp_path):
    """With one for the background work of each ledger, which each pass holds, all of them end."""
    settings = settings_for(database_url, tmp_path)
    async with world_on(settings, tmp_path, follow=False, background_size=1) as world:
        await (await world.partner()).sandbox()
        for ledger in world.service.ledgers:
            await Sequencer(ledger).number_committed()
        passes = [world.service.slices(ledger.name) for ledger in world.service.ledgers]
        passed = await asyncio.gather(*(one.slice() for one in passes))
    assert min(passed[0], passed[2]) > 0  # live has no event yet
