"""The service's own secrets while PostgreSQL is silent: whoever needs them shares one attempt."""

import asyncio
import base64

import pytest

from service.ledger.database import Database, LedgerUnavailable
from service.ledger.encryption import MasterKeys
from service.ledger.service_keys import ServiceKeyStore
from tests.world import MASTER_KEY

pytestmark = pytest.mark.server

CALLERS = 10


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
        yield ServiceKeyStore(database, MasterKeys([base64.b64decode(MASTER_KEY)])), accepted
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
