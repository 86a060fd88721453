"""An installation that is older than the MACs: its roll-out, and from when on all is bound."""

import base64
from datetime import timedelta
from uuid import uuid4

import pytest

from service.evidence.binding import BindingRefused, bind_events
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.facts.lineages import EventsBound
from service.ledger.binding import Boundary, UnboundEvent, boundary_stream
from service.ledger.encryption import MasterKeys
from service.ledger.events import Meta
from service.ledger.sequencer import Sequencer
from tests.evidence.sealed_log import KEY
from tests.ledger.appending import APPROVED, append, approved, read
from tests.ledger.raw_events import RawEvent, append_with_macs, number_past_the_sequencer
from tests.ledger.samples import CAUSE
from tests.ledger.secrets_before import insert_secrets_of_before
from tests.protections import put_back, take_off
from tests.world import MASTER_KEY, service_on, settings_for

OF_THE_RELEASE_BEFORE = """
select accounts.write(1, '{}', '{}', '{}', '{}', '{}', '{}', '{}',
    array[%s]::uuid[], array[%s]::bigint[], array[%s], array[%s]::bytea[], '{1}',
    '{}', '{}', '{}', '{}', '{}', '{}')
"""


@pytest.fixture
async def older(database_url, tmp_path, owner):
    """Return the parts of an installation whose secrets are older than its event key."""
    insert_secrets_of_before(owner, MasterKeys([base64.b64decode(MASTER_KEY)]))
    async with service_on(settings_for(database_url, tmp_path)) as one:
        yield one


def approval(service, stream, version):
    """Return an event as a process of the release before stores it."""
    meta = Meta(service.clock(), CAUSE.actor, CAUSE.request_id, "accounts")
    codec = service.accounts.codec
    state = codec.encode(stream, version, APPROVED, meta, None)
    return RawEvent(stream, version, "PartnerApproved", state)


def write_as_before(owner, event):
    """Write with the ledger's role, as the release before does."""
    with owner.transaction():
        owner.execute("set local role claim_ledger_accounts")
        owner.execute(OF_THE_RELEASE_BEFORE, [*event])


async def number(ledger):
    """Number what can be; return the log's size and how many events were set aside."""
    sequencer = Sequencer(ledger)
    while await sequencer.step():
        pass
    async with ledger.database.reads.connection() as connection:
        row = await connection.fetchrow(
            "select (select size from accounts.head), (select count(*) from accounts.set_aside)"
        )
    return tuple(row)


async def test_beside_the_release_before_nothing_is_lost(older, owner):
    """Its events have no MAC and are numbered among ours; a MAC that does not hold never is."""
    accounts, stream = older.accounts, uuid4()
    write_as_before(owner, approval(older, stream, 1))
    await append(accounts, approved(stream, 1))
    write_as_before(owner, approval(older, stream, 3))
    assert len(await read(accounts, stream)) == 3
    async with accounts.transaction() as transaction:
        await append_with_macs(transaction, [approval(older, stream, 4)], [bytes(33)])
    assert await number(accounts) == (3, 1)


async def test_once_the_log_says_so_every_event_has_a_mac(older, owner, monkeypatch):
    """What comes without one later is set aside by every process; what came before counts."""
    accounts, stream, forged = older.accounts, uuid4(), uuid4()
    says_so = EventsBound(event_key=1)
    meta = Meta(older.clock(), CAUSE.actor, CAUSE.request_id, "accounts")
    place = boundary_stream("accounts")
    state = accounts.codec.encode(place, 1, says_so, meta, None)
    write_as_before(owner, RawEvent(place, 1, "EventsBound", state))  # nobody's word
    write_as_before(owner, approval(older, stream, 1))
    assert await number(accounts) == (1, 1)
    assert not (await accounts.binding()).boundaries
    with pytest.raises(BindingRefused, match="without a MAC at"):
        await bind_events(accounts, CAUSE)
    monkeypatch.setattr("service.evidence.binding.QUIET", timedelta())
    assert await bind_events(accounts, CAUSE)
    assert not await bind_events(accounts, CAUSE)
    monkeypatch.setattr("service.ledger.ledger.UNBOUND_SECONDS", 0)
    assert (await accounts.binding()).boundaries == [Boundary(2)]
    write_as_before(owner, approval(older, stream, 2))
    write_as_before(owner, approval(older, forged, 1))
    for one in (stream, forged):
        with pytest.raises(UnboundEvent):
            await read(accounts, one)
    assert await number(accounts) == (2, 3)
    assert [len(await read(accounts, one)) for one in (stream, forged)] == [1, 0]
    await append(accounts, approved(stream, 1))
    assert await number(accounts) == (3, 3)
    assert await verified(older) == (True, 3, None)


async def verified(service):
    """Return what verifying the accounts says, by the event keys."""
    roots = await service.secrets.known_events()
    verdict = await verify_ledger(
        service.accounts.database, Evidence([KEY]), event_keys=roots.of_ledger("accounts")
    )
    return verdict.ok, verdict.size, verdict.fault


async def test_what_says_so_is_a_fault_without_its_mac(older, owner, monkeypatch):
    """Who takes the MACs off, and forges an event, does not have the log from before MACs."""
    accounts = older.accounts
    monkeypatch.setattr("service.evidence.binding.QUIET", timedelta())
    assert await bind_events(accounts, CAUSE)
    await append(accounts, approved(uuid4(), 0))
    assert await number(accounts) == (2, 0)
    take_off(owner, "accounts.events")
    owner.execute("update accounts.events set mac = null")
    put_back(owner, "accounts.events")
    ok, _, fault = await verified(older)
    assert not ok
    assert fault.startswith("The event at position 1 does not fit: this service did not write it")


async def test_in_one_batch_the_boundary_counts_from_its_place_on(older, owner, monkeypatch):
    """What is queued before it is numbered without a MAC, and what is queued behind it is not."""
    accounts = older.accounts
    monkeypatch.setattr("service.evidence.binding.QUIET", timedelta())

    async def later(_self):
        pass

    monkeypatch.setattr(Sequencer, "number_committed", later)
    write_as_before(owner, approval(older, uuid4(), 1))
    assert await bind_events(accounts, CAUSE)
    write_as_before(owner, approval(older, uuid4(), 1))
    await append(accounts, approved(uuid4(), 0))
    assert await number(accounts) == (3, 1)


async def test_what_others_number_as_boundaries_takes_little_memory(service, owner):
    """One that is larger than any is not read, whoever's its MAC is."""
    accounts, stream = service.accounts, boundary_stream("accounts")
    for version, size in ((1, 4096), (2, 4097)):
        async with accounts.transaction() as transaction:
            forged = RawEvent(stream, version, "EventsBound", b"x" * size)
            (append_id,) = await append_with_macs(transaction, [forged], [b"\1" + bytes(32)])
        number_past_the_sequencer(owner, append_id)
    rows = await accounts.database.reads.fetch(*accounts.bound)
    assert [len(row["state"]) for row in rows] == [4096]
