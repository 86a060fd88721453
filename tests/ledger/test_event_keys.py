"""Another key binds events from now on, while processes run that have not heard of it."""

from datetime import timedelta
from uuid import uuid4

import pytest

from service.app.bootstrap import Service
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger import service_keys
from service.ledger.encryption import KeyUnknown
from service.ledger.sequencer import Sequencer
from service.ledger.service_keys import EventKeyRefused
from tests.evidence.sealed_log import KEY
from tests.ledger.appending import append, approved, read
from tests.ledger.raw_events import RawEvent, append_with_macs
from tests.patience import eventually
from tests.world import PATIENCE_SECONDS, settings_for

MACS = "select get_byte(mac, 0), count(*) from accounts.events group by 1 order by 1"


@pytest.fixture
async def other(database_url, tmp_path):
    """Return another process of the installation."""
    settings = settings_for(database_url, tmp_path)
    async with Service(settings, deadline_seconds=PATIENCE_SECONDS).opened() as one:
        yield one


async def number(ledger):
    """Number what can be."""
    while await Sequencer(ledger).step():
        pass


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
    key_id, _ = await service.secrets.add_event_key()
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
    assert (await accounts.binding()).boundary is not None  # since the start, as before


async def append_with_macs_of_nobody(ledger):
    """Write an event under a key that there is not."""
    async with ledger.transaction() as transaction:
        forged = RawEvent(uuid4(), 1, "PartnerApproved", b"{}")
        await append_with_macs(transaction, [forged], [b"\3" + bytes(32)])


async def test_a_new_event_key_signs_when_every_process_knows_it(service, other, owner):
    """Not at once; and until it does there is no other."""
    await other.secrets.get()
    key_id, _ = await service.secrets.add_event_key()
    await service.secrets.read_events()
    events = (await service.secrets.get()).events
    assert (set(events.keys), events.signing, key_id) == ({1, 2}, 1, 2)
    with pytest.raises(EventKeyRefused, match="does not sign yet"):
        await service.secrets.add_event_key()
    owner.execute("update accounts.event_keys set signs_from = now() where key_id = 2")
    await service.secrets.read_events()
    assert (await service.secrets.get()).events.signing == 2
    assert service_keys.SIGNS_AFTER.total_seconds() > service_keys.STALE_SECONDS


async def test_a_process_looks_for_event_keys_as_it_works(service, other, owner, monkeypatch):
    """Beside what goes on; one that was idle for long looks first. What it cannot read it keeps."""
    await other.secrets.get()
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    await service.secrets.add_event_key()
    monkeypatch.setattr(service_keys, "REREAD_SECONDS", -1)
    assert (await other.secrets.get()).events.signing == 1
    await eventually(lambda: signs(other.secrets, 2))
    await service.secrets.add_event_key()
    monkeypatch.setattr(service_keys, "STALE_SECONDS", -1)
    assert (await other.secrets.get()).events.signing == 3
    owner.execute("insert into accounts.event_keys values (4, true, 'garbage', 'nobody')")
    assert (await other.secrets.get()).events.signing == 3
    with pytest.raises(KeyUnknown):
        await service.secrets.add_event_key()
