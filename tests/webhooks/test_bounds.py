"""What webhooks may take: places in a queue, rows, connections, and looks at the database."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest

from service.core.clock import system_clock
from service.core.errors import Refusal
from service.ledger.sql import Sql
from service.webhooks import deliveries, dispatcher
from service.webhooks.decisions import ENDPOINTS_MAX
from service.webhooks.queues import TESTS_AN_HOUR_MAX
from service.webhooks.shared_pool import STATEMENTS_AT_ONCE_MAX, SharedPool
from tests.ledger.samples import CAUSE
from tests.patience import eventually
from tests.webhooks.setting import HOUR, OTHER, URL, taken

pytestmark = pytest.mark.server

_STATES = Sql(
    "states", "What is stored.", "select state from ledger.events where topic ~ 'Endpoint'"
)


async def test_an_endpoints_queue_is_bounded(one, monkeypatch):
    """The rest stays in the log, and follows."""
    for module in (deliveries, dispatcher):
        monkeypatch.setattr(module, "OPEN_MAX", 5)
    partner, endpoint = await one.subscribed()
    one.sink.answers[URL] = None
    await one.claims(partner, *(f"c{nr}" for nr in range(12)))
    await one.serve()
    assert len(await one.queues.open("live", endpoint)) == 5
    del one.sink.answers[URL]
    await one.pass_time(HOUR, HOUR / 60)
    assert len(taken(one)) == 12


async def test_looking_among_many_endpoints_is_followed_by_a_pause():
    """A look that takes long is not repeated at once, however often somebody asks for it."""
    looks = []
    time = asyncio.get_running_loop().time

    async def fetch(*_args):
        looks.append(time())
        await asyncio.sleep(2 * dispatcher.LOOK_SECONDS_FREE)
        return []

    async def fetchrow(*_args):
        return None

    async def closed():
        return []

    pool, targets = SimpleNamespace(fetch=fetch, fetchrow=fetchrow), SimpleNamespace(closed=closed)
    parts = SimpleNamespace(pool=pool, targets=targets, clock=system_clock)
    one = dispatcher.Dispatcher(parts)
    for _ in range(2):
        await one.step()
    first, second = looks
    assert second - first >= dispatcher.PAUSE_FOR_A_LOOK * 2 * dispatcher.LOOK_SECONDS_FREE


async def test_webhooks_leave_connections_to_the_others():
    """However many endpoints are served: two statements at a time, and the rest wait."""
    at_once, most, ended = [], [], asyncio.Event()

    async def fetch(*_args):
        at_once.append(1)
        most.append(len(at_once))
        await ended.wait()
        at_once.pop()

    pool = SharedPool(SimpleNamespace(background=SimpleNamespace(fetch=fetch, fetchrow=fetch)))
    calls = [asyncio.create_task(call("")) for call in (pool.fetch, pool.fetchrow) * 5]
    await eventually(lambda: len(most) == STATEMENTS_AT_ONCE_MAX)
    ended.set()
    await asyncio.gather(*calls)
    assert (len(most), max(most)) == (10, STATEMENTS_AT_ONCE_MAX)


async def test_old_deliveries_are_forgotten(one):
    """After thirty days."""
    partner, endpoint = await one.subscribed()
    await one.claims(partner, "a")
    await one.serve()
    one.now += timedelta(days=31)
    one.dispatcher._forgets_at = 0.0  # noqa: SLF001 - an hour of the loop's own clock
    await one.serve()
    assert await one.queues.delivered("live", endpoint) != [], "only this clock is ahead"
    await one.grow_old(timedelta(days=31))
    one.dispatcher._forgets_at = 0.0  # noqa: SLF001 - as above
    await one.serve()
    assert await one.queues.delivered("live", endpoint) == []


async def test_a_partner_has_a_few_endpoints_in_each_mode(one):
    """Its URL is encrypted in the log, and must be one that webhooks may go to."""
    partner = await one.approved()
    for _ in range(ENDPOINTS_MAX):
        endpoint = await one.endpoint(partner)
    with pytest.raises(Refusal, match="limit_reached"):
        await one.endpoint(partner)
    with pytest.raises(Refusal, match="validation_failed"):
        await one.commands.change(partner, endpoint, "http://10.0.0.1/", [], CAUSE)
    await one.commands.change(partner, endpoint, OTHER, ["claim.created"], CAUSE)
    await one.commands.rotate(partner, endpoint, 2, CAUSE)
    await one.commands.rotate(partner, endpoint, 2, CAUSE)
    row = (await one.service.endpoint_list.of(partner))[-1]
    assert (row["url"], row["types"], row["secret_version"]) == (OTHER, "claim.created", 2)
    rows = await one.service.accounts.database.reads.fetch(_STATES)
    assert rows
    assert not any(b"example.com" in row["state"] for row in rows)


async def test_test_events_are_few(one):
    """So many an hour, however fast they are delivered: each is a row of the log."""
    _, endpoint = await one.subscribed()

    async def press():
        while True:
            await one.queues.test("live", endpoint)
            await one.follow()
            await one.serve()

    with pytest.raises(Refusal, match="limit_reached"):
        await press()
    assert len(taken(one)) == TESTS_AN_HOUR_MAX
