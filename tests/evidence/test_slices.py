"""The worker verifies the whole log in slices, and signs nothing over what it found."""

from datetime import timedelta

import pytest

from service.evidence.checkpoints.finding import finding
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.verify import slices as module
from service.evidence.verify.slices import FAULTY_SECONDS, Slices
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import ALTER, KEY, REHASH
from tests.tables import every_row

DAY = 86_400


class Days:
    """A clock of the ledger, moved by hand."""

    def __init__(self, ledger):
        self.seconds, began = 0.0, ledger.clock()
        ledger.clock = lambda: began + timedelta(seconds=self.seconds)


@pytest.fixture
def days(accounts):
    """Return the clock."""
    return Days(accounts)


@pytest.fixture
async def slices(accounts, checkpoints, add, monkeypatch):
    """Return the slices, of two events each, of a log with checkpoints of 1, 3 and 5 of 6."""
    monkeypatch.setattr(module, "SLICE_SECONDS", -1)
    monkeypatch.setattr(module, "EVENTS_MAX", 2)
    for count in (2, 2, 1):
        await checkpoints.make()
        await add(count)
    await Sequencer(accounts).number_committed()
    return Slices(accounts, [KEY], DAY)


async def passes(slices):
    """Return the sizes of the slices of a whole pass."""
    sizes = []
    while size := await slices.slice():
        sizes.append(size)
    return sizes


async def test_all_of_the_log_is_verified_within_a_day(slices, accounts, days, owner):
    """A slice after the other, whichever process makes it; then it rests for half of the day."""
    assert (await finding(accounts.database)).verified_at is None
    first = await slices.slice()
    assert (first, await passes(Slices(accounts, [KEY], DAY))) == (2, [2, 2])
    verified_at, *found = await finding(accounts.database)
    assert (verified_at, found) == (accounts.clock(), [None, None])
    days.seconds = DAY / 2 - 1
    assert await passes(slices) == []
    days.seconds = DAY / 2
    assert await passes(slices) == [2, 2, 2]
    owner.execute("update accounts.log_verification set began_at = began_at + interval '1 year'")
    assert await passes(slices) == [2, 2, 2], "nobody but this service says that it was verified"


def cases():
    """Return changes, how each is undone, where the fault is, and what is said of it."""
    mend = ALTER.replace("'system:dev'", "'system:x'").replace("'system:dew'", "'system:dev'")
    mend = mend.replace("'system:x'", "'system:dew'")
    for at in (4, 6):
        undo = (mend.format(at), REHASH.format(at))
        yield [ALTER.format(at)], undo, at, f"position {at} is not the one that was hashed"
        both = [ALTER.format(at), REHASH.format(at)]
        yield both, undo, at, f"position {at} was not written by this service"
    position = "update accounts.log set position = {} where position = {}"
    yield [position.format(99, 3)], [position.format(3, 99)], 3, "position 3 is missing"
    note = "update accounts.checkpoints set note = replace(note, '{}', '{}') where size = 5"
    yield [note.format("— ", "— x")], [note.format("— x", "— ")], 5, "of 5 events is not sound"
    head = "update accounts.head set tree = substring(tree || tree from {} for octet_length(tree))"
    yield [head.format(2)], [], 6, "The tree in the head"


async def test_what_was_altered_is_found_and_nothing_is_signed_over_it(
    slices, accounts, days, checkpoints, attack
):
    """Until it was mended, and a whole pass found nothing; the last one is left."""
    with every_row() as row:
        for changes, undo, position, said in cases():
            with row(said):
                days.seconds += DAY
                attack(*changes)
                await passes(slices)
                found = await finding(accounts.database)
                assert (found.position, said in found.fault) == (position, True), found
                with pytest.raises(LedgerForked, match="the log was altered"):
                    await checkpoints.make()
                if undo:
                    attack(*undo)
                    assert await passes(slices) == [], "not at once"
                    days.seconds += FAULTY_SECONDS
                    await passes(slices)
                    assert (await finding(accounts.database)).fault is None


async def test_a_worker_rests_between_slices(accounts, monkeypatch):
    """A quarter of a processor at most, and nothing at its start."""
    now = [1000.0]
    worker = Slices(accounts, [KEY], DAY, lambda: now[0])
    looked: list[float] = []

    async def slice_of_two_seconds():
        looked.append(now[0])
        now[0] += 2
        return len(looked) < 3

    monkeypatch.setattr(worker, "slice", slice_of_two_seconds)
    for _ in range(200):
        assert await worker.step() == 0
        now[0] += 1
    assert [round(at) for at in looked] == [1030, 1038, 1046, 1106, 1166]
