"""States that a process keeps: what is read for them, and when they are folded anew."""

from uuid import uuid4

import pytest

from service.facts.catalogue import ACCOUNTS
from service.facts.partners import Partner, fold
from service.ledger import folding
from service.ledger.binding import Boundary, UnboundEvent
from service.ledger.folding import Folding
from service.ledger.writing import Append
from tests.ledger.appending import append, applied, approved
from tests.ledger.decoded import decoded
from tests.ledger.samples import CANARY, CAUSE, plain
from tests.memory_ledger import memory_service
from tests.world import settings_for

DECLINED = plain(ACCOUNTS["PartnerDeclined"])
STATE = Folding(Partner(), lambda before, past: fold((one.event for one in past), before))
TOPICS = Folding(
    (), lambda before, past: (*before, *(type(one.event).__name__ for one in past)), personal=False
)
VERSIONS = Folding((), lambda before, past: (*before, *(one.append_id for one in past)))


@pytest.fixture
async def accounts(tmp_path):
    """Return a ledger in memory."""
    return memory_service(settings_for("postgresql://nobody@127.0.0.1:1/none", tmp_path)).accounts


async def in_transaction(accounts, stream, what):
    """Return a state as a command reads it."""
    async with accounts.transaction() as transaction:
        return await transaction.fold(stream, what)


async def test_only_what_follows_is_decoded(accounts, monkeypatch):
    """Whoever asks; and a long stream is read in pages, none of which is decoded twice."""
    monkeypatch.setattr(folding, "PAGE_EVENTS", 7)
    stream = uuid4()
    await append(accounts, approved(stream, 0, 40))
    with decoded() as topics:
        first = await accounts.fold(stream, VERSIONS)
    assert (len(first), len(topics)) == (40, 40)
    (further,) = await append(accounts, approved(stream, 40))
    with decoded() as topics:
        assert await in_transaction(accounts, stream, VERSIONS) == (*first, further.append_id)
        assert await accounts.fold(stream, VERSIONS) == (*first, further.append_id)
    assert len(topics) == 1


async def test_what_a_page_held_is_kept_where_the_next_one_fails(accounts, monkeypatch):
    """However long a stream is, asking again gets to its end."""
    monkeypatch.setattr(folding, "PAGE_EVENTS", 7)
    stream, reads = uuid4(), accounts.database.reads
    await append(accounts, approved(stream, 0, 9))
    fetch, pages = reads.fetch, []

    async def failing(sql, *args):
        pages.append(args)
        if len(pages) == 2:
            raise TimeoutError
        return await fetch(sql, *args)

    monkeypatch.setattr(reads, "fetch", failing)
    with pytest.raises(TimeoutError):
        await accounts.fold(stream, VERSIONS)
    with decoded() as topics:
        assert len(await accounts.fold(stream, VERSIONS)) == 9
    assert len(topics) == 2


async def test_what_was_taken_back_is_not_kept(accounts):
    """A database that was set back draws the same append_ids again, for other events."""
    stream, events = uuid4(), accounts.database.tables["events"]
    await append(accounts, approved(stream, 0))
    await append(accounts, approved(stream, 1))
    assert await accounts.fold(stream, TOPICS) == ("PartnerApproved", "PartnerApproved")
    events.pop()
    assert await accounts.fold(stream, TOPICS) == ("PartnerApproved",)
    await append(accounts, approved(stream, 1))
    assert await accounts.fold(stream, TOPICS) == ("PartnerApproved", "PartnerApproved")
    again = events.pop()
    await append(accounts, Append(stream, 1, [DECLINED], CAUSE))
    events[-1].update(append_id=again["append_id"])
    await append(accounts, approved(stream, 2))
    told = ("PartnerApproved", "PartnerDeclined", "PartnerApproved")
    assert await in_transaction(accounts, stream, TOPICS) == told
    assert await accounts.fold(stream, TOPICS) == told


async def test_what_is_not_committed_is_not_kept(accounts):
    """A transaction sees what it has appended; nobody does after it failed."""
    stream = uuid4()
    await append(accounts, approved(stream, 0))

    async def fail():
        async with accounts.transaction() as transaction:
            await transaction.append(approved(stream, 1))
            assert len(await transaction.fold(stream, VERSIONS)) == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert accounts.kept.get(stream, VERSIONS) is None
    assert len(await accounts.fold(stream, VERSIONS)) == 1


async def test_what_was_erased_is_not_kept(accounts):
    """The data key is asked for each time, also where nothing was appended."""
    stream = uuid4()
    await append(accounts, applied(accounts, stream))
    assert (await accounts.fold(stream, STATE)).name == CANARY
    keys = accounts.database.tables["data_keys"]
    (key,) = keys
    keys.clear()
    assert (await accounts.fold(stream, STATE)).name is None
    keys.append(key)
    assert (await accounts.fold(stream, STATE)).name == CANARY


async def test_an_event_of_somebody_else_is_not_folded(accounts):
    """Behind a kept state, or where events that it has count no longer."""
    stream = uuid4()
    await append(accounts, approved(stream, 0, 2))
    assert len(await accounts.fold(stream, VERSIONS)) == 2
    binding = await accounts.binding()
    later = (*binding.boundaries, Boundary(1, 2))
    accounts._binding = binding._replace(boundaries=later)  # noqa: SLF001 - a key was retired
    with pytest.raises(UnboundEvent):
        await accounts.fold(stream, VERSIONS)
    accounts._binding = binding  # noqa: SLF001 - as before
    accounts.database.tables["events"][-1].update(mac=bytes(33))
    with pytest.raises(UnboundEvent):
        await accounts.fold(stream, VERSIONS)


async def test_memory_is_bounded(accounts, monkeypatch):
    """In states, in what they are made of, and in how long nobody has asked for one."""
    monkeypatch.setattr(folding, "STATES_MAX", 2)
    monkeypatch.setattr(folding, "PARTS_MAX", 20)
    weighed = Folding((), VERSIONS.fold, parts=len)
    streams = [uuid4() for _ in range(4)]
    for stream, events in zip(streams, (1, 2, 3, 20), strict=True):
        await append(accounts, approved(stream, 0, events))

    def known():
        return [number for number, one in enumerate(streams) if accounts.kept.get(one, weighed)]

    for stream in streams[:3]:
        await accounts.fold(stream, weighed)
    assert known() == [1, 2]
    await accounts.fold(streams[1], weighed)
    await accounts.fold(streams[0], weighed)
    assert known() == [0, 1]
    assert len(await accounts.fold(streams[3], weighed)) == 20  # too large for others beside it
    assert known() == [0, 1]
    monkeypatch.setattr(folding, "STATES_MAX", 9)
    for stream in [uuid4() for _ in range(3)]:  # the largest that are kept: all but two make room
        await append(accounts, approved(stream, 0, 5))
        await accounts.fold(stream, weighed)
        await accounts.fold(streams[1], weighed)
    assert known() == [0, 1]
    await append(accounts, approved(streams[1], 2, 3))
    await accounts.fold(streams[1], weighed)
    assert known() == [1]
    monkeypatch.setattr(folding, "UNUSED_SECONDS", -1.0)
    assert known() == []


async def test_a_state_that_is_too_large_is_read_on_from_what_fits(accounts, monkeypatch):
    """However often it is asked for, it pushes out nothing."""
    monkeypatch.setattr(folding, "PAGE_EVENTS", 5)
    monkeypatch.setattr(folding, "PARTS_MAX", 40)
    weighed = Folding((), VERSIONS.fold, parts=len)
    stream, other = uuid4(), uuid4()
    await append(accounts, approved(stream, 0, 41), approved(other, 0, 10))
    await accounts.fold(other, weighed)
    whole = await accounts.fold(stream, weighed)
    for _ in range(2):
        with decoded() as topics:
            assert await accounts.fold(stream, weighed) == whole
            assert len(await accounts.fold(other, weighed)) == 10
        assert len(topics) == 41 - 9
