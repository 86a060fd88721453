"""The service's own secrets: read once by whoever needs them, and by nobody else's rows."""

import asyncio
import base64
from uuid import uuid4

import pytest

from service.ledger.database import Database, LedgerUnavailable
from service.ledger.encryption import KeyGone, MasterKeys
from service.ledger.service_keys import ServiceKeyStore
from tests.ledger.appending import append, approved
from tests.protections import put_back, take_off
from tests.world import MASTER_KEY

pytestmark = pytest.mark.server

CALLERS = 10
RING = MasterKeys([base64.b64decode(MASTER_KEY)])


@pytest.fixture
async def silent():
    """Return a store whose PostgreSQL accepts connections and says nothing, and their list."""
    accepted, over = [], asyncio.Event()

    async def say_nothing(_reader, writer):
        accepted.append(writer)
        await over.wait()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"postgresql://nobody@127.0.0.1:{port}/none?sslmode=disable"
        database = Database(url, "accounts", pool_size=CALLERS, deadline=0.2)
        await database.open()
        yield ServiceKeyStore(database, RING), accepted
        await database.close()
        over.set()


async def test_all_who_ask_share_one_attempt(silent):
    """Nobody waits for the deadlines of those who came before; later there is another attempt."""
    store, accepted = silent
    outcomes = await asyncio.gather(*(store.get() for _ in range(CALLERS)), return_exceptions=True)
    assert [type(one) for one in outcomes] == [LedgerUnavailable] * CALLERS
    assert len(accepted) == 1
    with pytest.raises(LedgerUnavailable):
        await store.get()
    assert len(accepted) == 1  # it waits for the connection that was begun


async def test_a_caller_that_is_cancelled_ends_nobody_elses_attempt(silent):
    """The others learn what became of it."""
    store, accepted = silent
    first, second = (asyncio.create_task(store.get()) for _ in range(2))
    await asyncio.sleep(0)  # both have begun to wait
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(LedgerUnavailable):
        await second
    assert len(accepted) == 1


async def test_a_row_that_somebody_adds_keeps_nobody_from_starting(service, owner):
    """Only the service's own names are read."""
    known = await service.secrets.get()
    owner.execute("insert into accounts.service_keys values ('x', '\\x00', 'nokey')")
    started = ServiceKeyStore(service.accounts.database, RING)
    assert await started.get() == known
    await started.check()


async def test_a_key_that_is_gone_is_never_drawn_again(service, owner):
    """Another pepper would take all API keys for wrong ones, and hide that one was lost."""
    await service.secrets.get()
    owner.execute("update accounts.service_keys set name = 'x' where name = 'pepper'")
    started = ServiceKeyStore(service.accounts.database, RING)
    for read in (started.get, started.check):
        with pytest.raises(KeyGone, match="key pepper is gone"):
            await read()


async def test_event_keys_that_are_gone_are_never_drawn_again(service, owner):
    """With another, whoever took the MACs off all events could forge more (decision 45)."""
    await append(service.accounts, approved(uuid4(), 0))
    known = await service.secrets.get()
    take_off(owner, "accounts.events")
    owner.execute("update accounts.events set mac = null")
    put_back(owner, "accounts.events")
    owner.execute("delete from accounts.event_keys")
    started = ServiceKeyStore(service.accounts.database, RING)
    for read in (started.get, started.known_events, service.secrets.known_events):
        with pytest.raises(KeyGone, match="that bind events to the service are gone"):
            await read()
    assert owner.execute("select count(*) from accounts.event_keys").fetchone() == (0,)
    await service.secrets.read_events()  # whoever works goes on
    assert (await service.secrets.get()).events.keys == known.events.keys


async def test_secrets_are_drawn_only_where_there_is_nothing(service, owner):
    """Where all are gone, and events are not, an operator is told so."""
    await append(service.accounts, approved(uuid4(), 0))
    owner.execute("delete from accounts.event_keys")
    owner.execute("delete from accounts.service_keys")
    started = ServiceKeyStore(service.accounts.database, RING)
    for read in (started.get, started.check):
        with pytest.raises(KeyGone, match="own keys are gone"):
            await read()
    with pytest.raises(KeyGone, match="that bind events to the service are gone"):
        await started.known_events()
    assert owner.execute("select count(*) from accounts.service_keys").fetchone() == (0,)


async def test_event_keys_of_which_none_signs_are_no_error_of_ours(service, owner):
    """No older one signs instead: what it signed might be set aside after it was answered."""
    await service.secrets.get()
    owner.execute("update accounts.event_keys set signs_from = 'infinity'")
    with pytest.raises(KeyGone, match="no event key signs"):
        await ServiceKeyStore(service.accounts.database, RING).get()
    await service.secrets.read_events()  # whoever works goes on
    assert (await service.secrets.get()).events.signing == 1
