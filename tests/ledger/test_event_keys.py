"""Another key binds events from now on, while processes run that have not heard of it."""

from datetime import timedelta
from uuid import uuid4

import pytest

from service.evidence.binding import BindingRefused, bind_events
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.unbound import refuse_unbound
from service.evidence.set_aside import TakeBackRefused, newest_set_aside, take_back
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger import service_keys
from service.ledger.binding import UnboundEvent, boundary_stream
from service.ledger.database import LedgerUnavailable
from service.ledger.encryption import KeyUnknown
from service.ledger.events import Meta
from service.ledger.following.runner import Subscription
from service.ledger.service_keys import EventKeyRefused
from tests.evidence.sealed_log import KEY
from tests.ledger.appending import APPROVED, add_event_key, append, approved, read
from tests.ledger.raw_events import RawEvent, append_with_macs
from tests.ledger.samples import CAUSE
from tests.numbering import number
from tests.patience import eventually
from tests.projections.brittle import Setting
from tests.world import service_on, settings_for

MACS = "select get_byte(mac, 0), count(*) from accounts.events group by 1 order by 1"


@pytest.fixture
async def other(database_url, tmp_path):
    """Return another process of the installation."""
    async with service_on(settings_for(database_url, tmp_path)) as one:
        yield one


async def signs(secrets, key_id):
    """Return whether a process signs with a key."""
    return (await secrets.get()).events.signing == key_id


async def verdict_of(service):
    """Return whether the log of accounts holds, by keys that are read now."""
    roots = await service.secrets.known_events()
    return await verify_ledger(
        service.accounts.database, Evidence([KEY]), event_keys=roots.of_ledger("accounts")
    )


async def test_a_new_event_key_is_taken_up_by_running_processes(service, other, owner, monkeypatch):
    """Events of both keys hold; a process that does not know the new one sets nothing aside."""
    accounts, stream = service.accounts, uuid4()
    await append(accounts, approved(stream, 0))
    await number(other.accounts)
    await other.secrets.get()
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    key_id = await add_event_key(service)
    await append(accounts, approved(stream, 1))  # by the old one still: it has not looked
    await service.secrets.read_events()
    await append(accounts, approved(stream, 2))
    await append_with_macs_of_nobody(accounts)
    await number(other.accounts)  # which has not looked either
    await append(other.accounts, approved(stream, 3))
    assert len(await read(service.accounts, stream)) == 4
    await number(other.accounts)
    assert owner.execute(MACS).fetchall() == [(1, 2), (key_id, 2)]
    assert owner.execute("select count(*) from accounts.set_aside").fetchone() == (1,)
    verdict = await verdict_of(other)
    assert (key_id, verdict.ok, verdict.size) == (2, True, 4)
    assert (await accounts.binding()).boundaries  # since the start, as before


async def forge_by(ledger, key_id, event):
    """Write an event as somebody does who got hold of a key of before, and of a login."""
    keys = (await ledger.event_keys())._replace(signing=key_id)
    async with ledger.transaction() as transaction:
        await append_with_macs(transaction, [event], [keys.mac(*event)])


async def test_a_key_that_was_retired_binds_nothing_more(service, other, owner, monkeypatch):
    """What it bound before counts, what it binds later is set aside, believed and signed by nobody.

    Nor can it retire another, or be taken back.
    """
    accounts, stream = service.accounts, uuid4()
    await append(accounts, approved(stream, 0))
    await number(accounts)
    assert not await bind_events(accounts, CAUSE)
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    await add_event_key(service)
    for one in (service, other):
        await one.secrets.read_events()
    with pytest.raises(BindingRefused, match="by an earlier event key at"):
        await bind_events(accounts, CAUSE)
    monkeypatch.setattr("service.evidence.binding.QUIET", timedelta())
    monkeypatch.setattr("service.ledger.ledger.UNBOUND_SECONDS", 0)
    assert (await other.accounts.binding()).boundaries[-1].event_key == 1
    await forge_by(accounts, 1, RawEvent(uuid4(), 1, "PartnerApproved", b"{}"))  # still counts
    await number(other.accounts)
    assert await bind_events(accounts, CAUSE)
    assert not await bind_events(accounts, CAUSE)
    forged = RawEvent(stream, 2, "PartnerRevoked", b"{}")
    await forge_by(accounts, 1, forged)
    await forge_by(accounts, 1, RawEvent(boundary_stream("accounts"), 2, "EventsBound", b"{}"))
    for one in (service, other):
        with pytest.raises(UnboundEvent):
            await read(one.accounts, stream)
    await number(other.accounts)
    assert owner.execute("select count(*) from accounts.set_aside").fetchone() == (2,)
    aside = [(one.is_ours, one.mac) for one in await newest_set_aside(accounts)]
    assert aside == [(False, "key retired")] * 2
    with pytest.raises(TakeBackRefused, match="was retired"):
        await take_back(accounts, 1, "reason", CAUSE)
    await append(other.accounts, approved(stream, 1))
    await number(accounts)
    assert (await verdict_of(other)).ok
    await forge_by(accounts, 1, RawEvent(uuid4(), 1, "PartnerApproved", b"{}"))
    owner.execute(
        "with p as (delete from accounts.pending returning append_id),"
        " l as (insert into accounts.log select 5, append_id, accounts.leaf_hash(5, append_id,"
        " originator_id, originator_version, topic, state)"
        " from accounts.events join p using (append_id) returning position) select * from l"
    )
    verdict = await verdict_of(other)
    assert (verdict.ok, verdict.position) == (False, 5)
    assert "event key 1, which was retired before" in verdict.fault
    with pytest.raises(LedgerForked, match="position 5 was not written by this service"):
        await refuse_unbound(accounts.database, await accounts.binding(), 0, 5)


async def append_with_macs_of_nobody(ledger):
    """Write an event under a key that there is not."""
    async with ledger.transaction() as transaction:
        forged = RawEvent(uuid4(), 1, "PartnerApproved", b"{}")
        await append_with_macs(transaction, [forged], [b"\3" + bytes(32)])


async def test_no_row_revives_a_key_that_was_retired(service, other, owner, monkeypatch):
    """If the next one is said to sign later, nobody who starts believes, or signs, by it."""
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    monkeypatch.setattr("service.evidence.binding.QUIET", timedelta())
    monkeypatch.setattr("service.ledger.ledger.UNBOUND_SECONDS", 0)
    accounts = service.accounts
    await append(accounts, approved(uuid4(), 0))
    await number(accounts)
    await add_event_key(service)
    await service.secrets.read_events()
    assert await bind_events(accounts, CAUSE)
    owner.execute("update accounts.event_keys set signs_from = 'infinity' where key_id = 2")
    for one in (service, other):
        await one.secrets.read_events()
        assert await signs(one.secrets, 1)
        stream, genuine = uuid4(), uuid4()
        state = accounts.codec.encode(
            stream,
            1,
            APPROVED,
            Meta(service.clock(), CAUSE.actor, CAUSE.request_id, "accounts"),
            None,
        )
        await forge_by(accounts, 1, RawEvent(stream, 1, "PartnerApproved", state))
        with pytest.raises(UnboundEvent):
            await read(one.accounts, stream)
        await append(one.accounts, approved(genuine, 0))
        await number(one.accounts)
        assert len(await read(one.accounts, genuine)) == 1
    assert owner.execute("select count(*) from accounts.set_aside").fetchone() == (2,)
    assert owner.execute(MACS).fetchall() == [(1, 1), (2, 3)]


async def test_a_new_event_key_signs_when_every_process_knows_it(service, other, owner):
    """Not at once; and until it does there is no other."""
    await other.secrets.get()
    key_id = await add_event_key(service)
    await service.secrets.read_events()
    events = (await service.secrets.get()).events
    assert (set(events.keys), events.signing, key_id) == ({1, 2}, 1, 2)
    with pytest.raises(EventKeyRefused, match="does not sign yet"):
        await add_event_key(service)
    owner.execute("update accounts.event_keys set signs_from = now() where key_id = 2")
    await service.secrets.read_events()
    assert (await service.secrets.get()).events.signing == 2
    assert service_keys.SIGNS_AFTER.total_seconds() > service_keys.STALE_SECONDS


async def test_a_follower_parks_nothing_by_the_keys_of_before(service, other, owner, monkeypatch):
    """An event may be of a key that its process has not read yet, which stood still: it waits."""
    await other.secrets.get()
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    await add_event_key(service)
    await service.secrets.read_events()
    await append(service.accounts, approved(uuid4(), 0))
    await number(service.accounts)
    one = Setting(other, owner)
    subscription = Subscription(other.accounts, one.projection)
    await subscription.step()  # registers
    with pytest.raises(LedgerUnavailable, match="event keys have changed"):
        await subscription.step()
    assert (await one.parked(), one.checkpoint()) == ([], 0)
    await one.follow()
    assert (await one.parked(), one.rows()) == ([], [1])


async def test_nothing_is_set_aside_while_the_event_keys_cannot_be_read(
    service, other, owner, monkeypatch
):
    """An event may be of a key that is among them: it waits until they can."""

    async def away():
        raise LedgerUnavailable

    await other.secrets.get()
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    await add_event_key(service)
    await service.secrets.read_events()
    await append(service.accounts, approved(uuid4(), 0))
    with monkeypatch.context() as patched:
        patched.setattr(other.secrets, "known_events", away)
        with pytest.raises(LedgerUnavailable):
            await number(other.accounts)
    await number(other.accounts)
    assert owner.execute("select count(*) from accounts.set_aside").fetchone() == (0,)
    assert owner.execute("select count(*) from accounts.log").fetchone() == (1,)


async def test_nothing_is_set_aside_by_keys_that_the_process_has_replaced_since(
    service, other, owner, monkeypatch
):
    """Another task of it reads the new key while a batch is judged by the ones of before."""
    event_keys = other.accounts.event_keys

    async def read_meanwhile(**how):
        found = await event_keys(**how)
        await other.secrets.read_events()
        return found

    await event_keys()
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    await add_event_key(service)
    await service.secrets.read_events()
    await append(service.accounts, approved(uuid4(), 0))
    monkeypatch.setattr(other.accounts, "event_keys", read_meanwhile)
    await number(other.accounts)
    assert owner.execute("select count(*) from accounts.set_aside").fetchone() == (0,)
    assert owner.execute("select count(*) from accounts.log").fetchone() == (1,)


async def test_a_process_looks_for_event_keys_as_it_works(service, other, owner, monkeypatch):
    """Beside what goes on; one that was idle for long looks first. What it cannot read it keeps."""
    await other.secrets.get()
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    await add_event_key(service)
    monkeypatch.setattr(service_keys, "REREAD_SECONDS", -1)
    assert (await other.secrets.get()).events.signing == 1
    monkeypatch.setattr(service_keys, "REREAD_SECONDS", 3600)  # else a read is always under way
    await eventually(lambda: signs(other.secrets, 2))
    await add_event_key(service)
    monkeypatch.setattr(service_keys, "REREAD_SECONDS", -1)
    monkeypatch.setattr(service_keys, "STALE_SECONDS", -1)
    assert (await other.secrets.get()).events.signing == 3
    owner.execute("insert into accounts.event_keys values (4, true, 'garbage', 'nobody')")
    assert (await other.secrets.get()).events.signing == 3
    with pytest.raises(KeyUnknown):
        await add_event_key(service)
