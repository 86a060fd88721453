from uuid import uuid4

import pytest

from service.facts.catalogue import ACCOUNTS
from service.ledger.ledger import Append, AppendConflict, PublicIdTaken
from tests.ledger.samples import CAUSE, sample

APPROVED = sample(ACCOUNTS["PartnerApproved"])
APPLIED = sample(ACCOUNTS["PartnerApplied"])


async def append(ledger, *appends):
    """Append in a transaction of its own."""
    async with ledger.transaction() as transaction:
        return await transaction.append(*appends)


async def read(ledger, stream):
    """Read one stream."""
    async with ledger.transaction() as transaction:
        return await transaction.read(stream)


def events(stream, expected_version, count=1):
    """Return an append of some events without personal fields, which no projector minds."""
    return Append(stream, expected_version, [APPROVED] * count, CAUSE)


async def test_events_are_read_as_they_were_appended(accounts):
    """A stream is read in the order of its versions, with what was said about each event."""
    stream = uuid4()
    written = await append(accounts, events(stream, 0, 2))
    written += await append(accounts, events(stream, 2))
    assert await read(accounts, stream) == written
    assert [one.version for one in written] == [1, 2, 3]
    assert {one.meta.actor for one in written} == {CAUSE.actor}
    assert len({one.append_id for one in written}) == 3


async def test_another_expected_version_is_a_conflict(accounts):
    """Whoever decided on an older state of a stream cannot append to it."""
    stream = uuid4()
    await append(accounts, events(stream, 0))
    with pytest.raises(AppendConflict):
        await append(accounts, events(stream, 0))
    assert len(await read(accounts, stream)) == 1


async def test_an_append_is_written_whole_or_not_at_all(accounts, owner):
    """When one of several streams conflicts, nothing of the others is left anywhere."""
    taken, free = uuid4(), uuid4()
    key = accounts.master_keys.new_data_key(free)
    await append(accounts, events(taken, 0))
    applied = Append(free, 0, [APPLIED], CAUSE, key, new_key=True, public_ids=["ptn_free"])
    with pytest.raises(AppendConflict):
        await append(accounts, applied, events(taken, 0))
    left = owner.execute(
        "select (select count(*) from accounts.events), (select count(*) from accounts.pending),"
        " (select count(*) from accounts.public_ids), (select count(*) from accounts.data_keys),"
        " (select count(*) from accounts.partners)"
    ).fetchone()
    assert left == (1, 1, 0, 0, 0)


async def test_a_subjects_key_is_stored_once(accounts, owner):
    """The key comes with a subject's first event; later events are sealed under the same one."""
    stream = uuid4()
    key = accounts.master_keys.new_data_key(stream)
    await append(accounts, Append(stream, 0, [APPLIED], CAUSE, key, new_key=True))
    async with accounts.transaction() as transaction:
        (stored,) = (await transaction.data_keys([stream])).values()
    other = uuid4()
    await append(accounts, Append(other, 0, [_of_another_partner()], CAUSE, stored))
    assert [one.event for one in await read(accounts, other)] == [_of_another_partner()]
    assert owner.execute("select count(*) from accounts.data_keys").fetchone() == (1,)


async def test_a_destroyed_key_leaves_the_stream_readable(accounts, owner):
    """Without the key an event is still there, with nothing personal in it."""
    stream = uuid4()
    key = accounts.master_keys.new_data_key(stream)
    await append(accounts, Append(stream, 0, [APPLIED], CAUSE, key, new_key=True))
    owner.execute("delete from accounts.data_keys")
    (recorded,) = await read(accounts, stream)
    assert (recorded.event.partner_id, recorded.event.name, recorded.event.email) == (
        APPLIED.partner_id,
        None,
        None,
    )


async def test_a_public_id_can_be_drawn_once(accounts):
    """A drawn id that exists already is told apart from a conflict of streams."""
    await append(accounts, events(uuid4(), 0)._replace(public_ids=["ptn_1"]))
    stream = uuid4()
    with pytest.raises(PublicIdTaken):
        await append(accounts, events(stream, 0)._replace(public_ids=["ptn_1"]))
    assert await read(accounts, stream) == []


async def test_a_command_decides_again_after_a_conflict(accounts):
    """`decide` loads and runs the attempt again until it is alone."""
    stream, seen = uuid4(), []

    async def attempt(transaction):
        seen.append(len(await transaction.read(stream)))
        if len(seen) == 1:
            await append(accounts, events(stream, 0))
        return await transaction.append(events(stream, seen[-1]))

    (recorded,) = await accounts.decide(attempt)
    assert (seen, recorded.version) == ([0, 1], 2)


async def test_the_sequencer_is_woken_after_an_append_alone(accounts):
    """A transaction that appends wakes the sequencer once it has committed; a reading one not."""
    woken = []
    accounts.on_append = lambda: woken.append(1)
    await read(accounts, uuid4())
    assert woken == []
    await append(accounts, events(uuid4(), 0))
    assert woken == [1]


def _of_another_partner():
    cls = ACCOUNTS["PartnerApplied"]
    return cls(partner_id="another", name="Another", email="another@example.com")
