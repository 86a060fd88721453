from uuid import uuid4

import pytest

from service.facts.catalogue import ACCOUNTS
from service.ledger.ledger import Append, AppendConflict
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
