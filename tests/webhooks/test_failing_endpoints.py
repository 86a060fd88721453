"""Endpoints that fail: tried ever more rarely, given up after days, and in nobody's way."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from service.core.errors import Refusal
from service.facts.claims import STAGES
from service.ledger.sql import Sql
from service.webhooks import deliveries, dispatcher
from service.webhooks.queues import TESTS_MAX
from service.webhooks.sender import EndpointAnswer
from service.webhooks.waits import ENDPOINT_WAIT_SECONDS_MAX, RETRIES, wait_after
from tests.ledger.samples import CAUSE
from tests.patience import eventually
from tests.webhooks.setting import HOUR, OTHER, URL, taken

pytestmark = pytest.mark.server

FAILING_LONG = Sql(
    "failing", "Alters rows.", "update ledger.webhook_queues set failing_since = '2020-01-01'"
)


async def test_a_dead_endpoint_is_given_up_after_three_days_and_goes_on_where_it_stopped(one):
    """Meanwhile it is asked ever more rarely, one event at a time, and holds up no other."""
    partner = await one.approved()
    dead, alive = await one.endpoint(partner), await one.endpoint(partner, OTHER)
    one.sink.answers[URL] = None
    names = [f"c{nr}" for nr in range(12)]
    await one.claims(partner, *names)
    await one.serve()
    assert sorted(taken(one, OTHER)) == sorted(f"clm_{name}" for name in names)
    await one.pass_time(70 * HOUR, 2 * HOUR)
    assert await one.state(partner, dead) is None
    await one.pass_time(6 * HOUR, HOUR)
    assert await one.state(partner, dead) == "failing"
    tried = sum(count for (url, _), count in one.sink.tried.items() if url == URL)
    assert tried < 200
    await one.follow()
    await one.claims(partner, "later")
    await one.pass_time(24 * HOUR, 4 * HOUR)
    assert sum(count for (url, _), count in one.sink.tried.items() if url == URL) == tried
    del one.sink.answers[URL]
    await one.commands.enable(partner, dead, CAUSE)
    await one.follow()
    await one.serve()
    assert sorted(taken(one)) == sorted(f"clm_{name}" for name in [*names, "later"])
    assert len(taken(one, OTHER)) == len(names) + 1
    assert await one.state(partner, alive) is None


async def test_a_clock_that_is_ahead_gives_nothing_up(one):
    """By the database's clock, which all processes share, the endpoint has only begun to fail."""
    partner, dead = await one.subscribed()
    one.sink.answers[URL] = None
    await one.claims(partner, "a", "b")
    await one.serve()
    tried = one.sink.tried.total()
    one.now += timedelta(days=31)
    await one.serve()
    assert one.sink.tried.total() > tried
    assert await one.state(partner, dead) is None


@pytest.mark.parametrize("takes_one_before", [True, False])
async def test_a_moment_in_a_row_alone_gives_nothing_up(one, takes_one_before):
    """An endpoint that has not failed has not failed since then, and takes what it is sent."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    await one.ledger.database.writes.fetch(FAILING_LONG)
    if takes_one_before:
        await one.claims(partner, "taken")
        await one.serve()
        states = await one.queues.states("live", [endpoint])
        assert states[endpoint]["failing_since"] is None
    one.sink.answers[URL] = None
    await one.claims(partner, "refused")
    await one.serve()
    assert one.sink.tried[URL, "clm_refused"] == 1
    assert await one.state(partner, endpoint) is None


async def test_one_claim_that_is_refused_for_three_days_is_set_aside_and_the_others_go_on(one):
    """What follows in it is kept with it, in order, until a member asks for it; nothing is lost."""
    partner, endpoint = await one.subscribed()
    one.sink.answers["clm_stuck"] = EndpointAnswer(500)
    await one.claims(partner, "stuck", stages=1)
    for nr in range(14):
        await one.claims(partner, f"c{nr}")
        await one.pass_time(9 * HOUR, 3 * HOUR)
    assert await one.state(partner, endpoint) is None
    assert len(set(taken(one))) == 14
    (aside,) = await one.queues.aside("live", endpoint)
    assert (aside["subject"], aside["events"], aside["fault"]) == ("clm_stuck", 2, "HTTP 500")
    assert await one.queues.open("live", endpoint) == []
    tried = one.sink.tried[URL, "clm_stuck"]
    assert tried == RETRIES.attempts_max
    await one.moved("stuck", partner)
    await one.pass_time(24 * HOUR, 8 * HOUR)
    (aside,) = await one.queues.aside("live", endpoint)
    assert (aside["events"], one.sink.tried[URL, "clm_stuck"]) == (3, tried)
    states = await one.queues.states("live", [endpoint])
    assert (states[endpoint]["open"], states[endpoint]["failing_since"]) == (0, None)
    one.sink.answers.clear()
    await one.queues.release("live", endpoint, aside["position"])
    await one.serve()
    assert [one for one in taken(one) if one == "clm_stuck"] == ["clm_stuck"] * 3
    sent = [msgspec.json.decode(body) for _, _, body in one.sink.sent]
    assert [event["data"]["stage"] for event in sent[-3:]] == list(STAGES[:3])
    assert await one.queues.aside("live", endpoint) == []


async def test_what_is_set_aside_takes_nobody_s_place_and_is_bounded(one, monkeypatch):
    """An endpoint that refuses too many claims is paused, though it takes others."""
    for module in (deliveries, dispatcher):
        monkeypatch.setattr(module, "OPEN_MAX", 2)
    monkeypatch.setattr(deliveries, "ASIDE_MAX", 2)
    partner, endpoint = await one.subscribed()
    for nr in range(3):
        one.sink.answers[f"clm_stuck{nr}"] = EndpointAnswer(500)
    await one.claims(partner, "stuck0", "stuck1")
    for _ in range(12):
        await one.pass_time(10 * HOUR, 2 * HOUR)
        await one.queues.test("live", endpoint)
        await one.serve()
    await one.claims(partner, "a", "b", "c")
    await one.serve()
    assert {"clm_a", "clm_b", "clm_c"} <= set(taken(one))
    assert len(await one.queues.aside("live", endpoint)) == 2
    assert await one.state(partner, endpoint) is None
    await one.claims(partner, "stuck2")
    for nr in range(12):
        await one.claims(partner, f"d{nr}")
        await one.pass_time(10 * HOUR, 2 * HOUR)
    assert await one.state(partner, endpoint) == "failing"


async def test_resuming_undoes_no_rest(one):
    """A member who pauses and resumes a dead receiver has it asked no more often."""
    partner, endpoint = await one.subscribed()
    one.sink.answers[URL] = None
    await one.claims(partner, *(f"c{nr}" for nr in range(10)))
    await one.pass_time(2 * HOUR, HOUR / 60)
    tried = len(one.sink.sent)
    for _ in range(30):
        await one.commands.disable(partner, endpoint, "member", CAUSE)
        await one.commands.enable(partner, endpoint, CAUSE)
        await one.follow()
        await one.pass_time(HOUR / 60, HOUR / 60)
    assert len(one.sink.sent) - tried <= 3
    rests = (await one.queues.states("live", [endpoint]))[endpoint]["rests_until"]
    assert rests > one.now
    del one.sink.answers[URL]
    await one.queues.test("live", endpoint)
    await one.serve()
    assert len(taken(one)) == 11


async def test_asking_for_tests_undoes_no_rest(one):
    """A test event that was refused sends nothing else, whatever the endpoint asked for."""
    partner, endpoint = await one.subscribed()
    one.sink.answers[URL] = EndpointAnswer(429, 600.0)
    for _ in range(TESTS_MAX):
        await one.queues.test("live", endpoint)
        await one.follow()
        await one.serve()
    assert len(one.sink.sent) == TESTS_MAX
    with pytest.raises(Refusal, match="limit_reached"):
        await one.queues.test("live", endpoint)
    await one.claims(partner, "a")
    await one.serve()
    assert len(one.sink.sent) == TESTS_MAX


async def test_one_that_is_gone_is_disabled_at_once(one):
    """By 410; the event stays for when it is enabled again."""
    partner, endpoint = await one.subscribed()
    one.sink.answers[URL] = EndpointAnswer(410)
    await one.claims(partner, "a", "b")
    await one.serve()
    assert await one.state(partner, endpoint) == "gone"
    await one.pass_time(HOUR, HOUR / 6)
    assert sum(one.sink.tried.values()) == 2
    assert len(await one.queues.open("live", endpoint)) == 2


async def test_one_that_was_gone_goes_on_once_it_is_enabled(one):
    """At once: that nothing could be sent to it meanwhile is no rest after failures."""
    partner, endpoint = await one.subscribed()
    one.sink.answers[URL] = EndpointAnswer(410)
    await one.claims(partner, "a", "b")
    await one.serve()
    await one.claims(partner, "c")
    await one.serve()
    assert await one.state(partner, endpoint) == "gone"
    assert (one.sink.tried.total(), taken(one)) == (2, [])
    del one.sink.answers[URL]
    await one.commands.enable(partner, endpoint, CAUSE)
    await one.follow()
    await one.serve()
    assert sorted(taken(one)) == ["clm_a", "clm_b", "clm_c"]


async def test_one_that_asks_for_time_gets_it(one):
    """By Retry-After, within bounds; it is left alone as a whole."""
    partner, _ = await one.subscribed()
    one.sink.answers |= {
        "clm_a": EndpointAnswer(500),
        "clm_b": EndpointAnswer(429, 600.0),
        "clm_c": EndpointAnswer(500),
    }
    await one.claims(partner, "a", "b", "c")
    await one.serve()
    one.sink.answers.clear()
    await one.pass_time(HOUR / 12, HOUR / 60)
    assert taken(one) == []
    await one.pass_time(HOUR / 10, HOUR / 60)
    assert sorted(taken(one)) == ["clm_a", "clm_b", "clm_c"]
    one.sink.answers["clm_d"] = EndpointAnswer(429, 24 * 3600.0)
    await one.claims(partner, "d")
    await one.serve()
    await one.claims(partner, "e")
    await one.pass_time(timedelta(seconds=ENDPOINT_WAIT_SECONDS_MAX + 60), HOUR / 12)
    assert taken(one)[3:] == ["clm_e"]


async def test_a_slow_endpoint_holds_up_no_other(one):
    """It has a few requests under way, and the others are served meanwhile."""
    partner = await one.approved()
    slow, _ = await one.endpoint(partner), await one.endpoint(partner, OTHER)
    released, under_way = asyncio.Event(), []

    async def wait():
        under_way.append(1)
        await released.wait()
        return EndpointAnswer(200)

    one.sink.answers[URL] = wait
    await one.claims(partner, *(f"c{nr}" for nr in range(30)))

    async def others_are_served():
        await one.dispatcher.step()
        return len(taken(one, OTHER)) == 30

    await eventually(others_are_served)
    assert len(under_way) <= deliveries.AT_ONCE_MAX
    released.set()
    await one.dispatcher.idle()
    await one.serve()
    assert len(under_way) == 30
    assert await one.queues.open("live", slow) == []


async def test_nobody_looks_at_a_full_queue_before_something_in_it_is_due(one, monkeypatch):
    """Of an endpoint that fails: to find that out, all that is in it would be counted each time."""
    for module in (deliveries, dispatcher):
        monkeypatch.setattr(module, "OPEN_MAX", 3)
    partner, endpoint = await one.subscribed()
    one.sink.answers[URL] = None
    await one.claims(partner, *(f"c{nr}" for nr in range(6)))

    async def due():
        return [row["next_attempt_at"] for row in await one.queues.open("live", endpoint)]

    await one.pass_time(24 * HOUR, HOUR / 2)
    while min(await due()) <= one.now + timedelta(seconds=ENDPOINT_WAIT_SECONDS_MAX):
        await one.pass_time(HOUR / 2, HOUR / 2)  # waits are drawn: something may be due any moment
    waiting = await due()
    rests = (await one.queues.states("live", [endpoint]))[endpoint]["rests_until"]
    assert (len(waiting), rests) == (3, min(waiting))
    assert rests > one.now + timedelta(seconds=ENDPOINT_WAIT_SECONDS_MAX)
    await one.commands.disable(partner, endpoint, "member", CAUSE)
    await one.commands.enable(partner, endpoint, CAUSE)
    await one.follow()
    rests = (await one.queues.states("live", [endpoint]))[endpoint]["rests_until"]
    assert rests <= one.now + timedelta(seconds=ENDPOINT_WAIT_SECONDS_MAX)
    del one.sink.answers[URL]
    await one.pass_time(HOUR, HOUR / 4)
    assert len(taken(one)) == 6


def test_attempts_take_three_days_in_all():
    """With waits that grow, and are never quite the same."""
    total = sum((wait_after(nr) for nr in range(1, RETRIES.attempts_max)), timedelta())
    assert timedelta(days=2.9) < total < timedelta(days=3.7)
    assert len({wait_after(20) for _ in range(20)}) > 1
