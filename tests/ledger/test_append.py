from uuid import uuid4

import pytest

from service.facts.catalogue import ACCOUNTS
from service.ledger.transaction import AppendConflict
from service.ledger.writing import Append
from tests.ledger.appending import APPLIED, append, applied, approved, read
from tests.ledger.samples import CAUSE


async def test_an_append_is_written_whole_or_not_at_all(accounts, owner):
    """When one of several streams conflicts, nothing of the others is left anywhere."""
    taken, free = uuid4(), uuid4()
    await append(accounts, approved(taken, 0))
    with pytest.raises(AppendConflict):
        await append(accounts, applied(accounts, free, "ptn_free"), approved(taken, 0))
    left = owner.execute(
        "select (select count(*) from accounts.events), (select count(*) from accounts.pending),"
        " (select count(*) from accounts.public_ids), (select count(*) from accounts.data_keys),"
        " (select count(*) from accounts.partners)"
    ).fetchone()
    assert left == (1, 1, 0, 0, 0)


async def test_a_subjects_key_is_stored_once(accounts, owner):
    """The key comes with a subject's first event; later events are sealed under the same one."""
    stream = uuid4()
    await append(accounts, applied(accounts, stream))
    async with accounts.transaction() as transaction:
        (stored,) = (await transaction.data_keys([stream])).values()
    other = uuid4()
    await append(accounts, Append(other, 0, [_of_another_partner()], CAUSE, stored))
    assert [one.event for one in await read(accounts, other)] == [_of_another_partner()]
    assert owner.execute("select count(*) from accounts.data_keys").fetchone() == (1,)


async def test_a_destroyed_key_leaves_the_stream_readable(accounts, owner):
    """Without the key an event is still there, with nothing personal in it."""
    stream = uuid4()
    await append(accounts, applied(accounts, stream))
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
    await append(accounts, approved(uuid4(), 0))
    assert woken == [1]


def _of_another_partner():
    cls = ACCOUNTS["PartnerApplied"]
    return cls(partner_id="another", name="Another", email="another@example.com")
