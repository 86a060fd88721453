"""Deliveries: at least once, in a claim's order, and none that is stuck holds up another."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import msgspec
import pytest
from standardwebhooks import Webhook
from structlog.testing import capture_logs

from service.core.clock import system_clock
from service.core.errors import Refusal
from service.facts.claims import STAGES
from service.ledger.database import LedgerUnavailable
from service.ledger.sql import Sql, queries
from service.webhooks import deliveries, dispatcher
from service.webhooks.decisions import ENDPOINTS_MAX
from service.webhooks.queues import TESTS_AN_HOUR_MAX, TESTS_MAX
from service.webhooks.sender import EndpointAnswer, Undelivered
from service.webhooks.shared_pool import STATEMENTS_AT_ONCE_MAX, SharedPool
from service.webhooks.signing import signing_keys
from service.webhooks.waits import ENDPOINT_WAIT_SECONDS_MAX, RETRIES, wait_after
from tests.ledger.samples import CAUSE
from tests.ledger.wired import service
from tests.patience import eventually
from tests.webhooks.setting import URL, Setting

__all__ = ["service"]

pytestmark = pytest.mark.server
HOUR = timedelta(hours=1)
OTHER = "https://other.example.com/"
_STATES = Sql(
    "states", "What is stored.", "select state from ledger.events where topic ~ 'Endpoint'"
)


_QUEUED = Sql(
    "queued",
    "A delivery of an event that nobody can read.",
    "insert into ledger.webhook_deliveries values ($1, 999, 'clm_x', 'claim.created', $2, 0, $2)",
)
_WAITING = Sql(
    "waiting",
    "Statements about queues that wait for a lock.",
    "select pid from pg_stat_activity where datname = current_database()"
    " and wait_event_type = 'Lock' and query like '%webhook_queues%'",
)


@pytest.fixture
def one(service):
    """Return the setting."""
    return Setting(service)


def taken(one, url=URL):
    """Return what an endpoint took."""
    return [subject for place, subject, _ in one.sink.taken if place == url]


async def test_an_endpoint_gets_what_happens_from_its_addition_on(one):
    """Its partner's events of its mode and no others, signed, each once."""
    partner, other = await one.approved(), await one.approved("Other")
    await one.claims(partner, "before")
    endpoint = await one.endpoint(partner)
    await one.claims(partner, "a", stages=1)
    await one.claims(other, "foreign")
    await one.serve()
    await one.serve()
    assert taken(one) == ["clm_a", "clm_a"]
    url, headers, body = one.sink.sent[-1]
    keys = signing_keys(await one.service.secrets.get(), endpoint, 1)
    event = Webhook(keys.shown_secret).verify(body, headers)
    assert url == URL
    assert (event["id"], event["type"]) == (headers["webhook-id"], "claim.stage_changed")
    assert event["data"]["stage"] == STAGES[1]
    assert headers["content-type"] == "application/cloudevents+json"
    (newest, _) = await one.queues.delivered("live", endpoint)
    assert (newest["type"], newest["attempts"], newest["status"]) == ("claim.stage_changed", 1, 200)
    before = (newest["delivered_at"], newest["position"])
    assert len(await one.queues.delivered("live", endpoint, before)) == 1


async def test_an_endpoint_gets_only_the_types_that_it_wants(one):
    """And goes on behind the others."""
    partner = await one.approved()
    await one.endpoint(partner, types=["claim.stage_changed"])
    await one.claims(partner, "a", "b", stages=1)
    await one.serve()
    types = [msgspec.json.decode(body)["type"] for _, _, body in one.sink.sent]
    assert types == ["claim.stage_changed"] * 2


async def test_an_endpoint_finds_what_it_wants_behind_much_else(one, monkeypatch):
    """At one go, however many places in the queue what lies between would take."""
    for module in (deliveries, dispatcher):
        monkeypatch.setattr(module, "OPEN_MAX", 2)
    partner = await one.approved()
    await one.endpoint(partner, types=["claim.stage_changed"])
    await one.claims(partner, *(f"c{nr}" for nr in range(7)))
    await one.claims(partner, "last", stages=1)
    await one.dispatcher.step()
    await one.dispatcher.idle()
    assert taken(one) == ["clm_last"]


async def test_a_stuck_claim_holds_up_no_other_and_keeps_its_order(one):
    """What follows in the claim waits for it, and comes after it with the ids of the first try."""
    partner = await one.approved()
    await one.endpoint(partner)
    one.sink.answers["clm_stuck"] = EndpointAnswer(500)
    await one.claims(partner, "stuck", "a", stages=2)
    await one.serve()
    assert taken(one) == ["clm_a"] * 3
    assert one.sink.tried[URL, "clm_stuck"] == 1
    del one.sink.answers["clm_stuck"]
    await one.claims(partner, "b")
    await one.pass_time(timedelta(seconds=20), timedelta(seconds=5))
    assert [one for one in taken(one) if one == "clm_stuck"] == ["clm_stuck"] * 3
    sent = [msgspec.json.decode(body) for _, _, body in one.sink.sent]
    stuck = [event for event in sent if event["subject"] == "clm_stuck"]
    assert [event["data"]["stage"] for event in stuck] == [STAGES[0], *STAGES[:3]]
    assert stuck[0]["id"] == stuck[1]["id"]
    assert len({event["id"] for event in sent}) == len(sent) - 1


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


async def test_one_claim_that_is_refused_for_three_days_is_set_aside_and_the_others_go_on(one):
    """What follows in it is kept with it, in order, until a member asks for it; nothing is lost."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
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
    await one.queues.release("live", endpoint, "clm_stuck")
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
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
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


async def set_aside(one, endpoint):
    """Set a claim aside whose first event is being attempted, or was."""
    (head, *_) = await one.queues.open("live", endpoint)
    statement = queries("service.webhooks").set_aside
    values = (endpoint, head["subject"], head["position"], "HTTP 500")
    await one.ledger.database.writes.fetch(statement, *values)


async def test_an_event_that_comes_while_its_claim_is_released_follows_it(one):
    """Whoever queues it sees the claim set aside still, and waits for whoever releases it."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    one.sink.answers["clm_a"] = EndpointAnswer(500)
    await one.claims(partner, "a")
    await one.serve()
    await set_aside(one, endpoint)
    one.sink.answers.clear()
    await one.moved("a", partner)
    pool = one.ledger.database.background
    async with pool.transaction() as connection:
        release = queries("service.webhooks").release.on(pool.schema)
        await connection.fetch(release, endpoint, "clm_a", one.now, ENDPOINT_WAIT_SECONDS_MAX)
        serving = asyncio.create_task(one.serve())
        await eventually(lambda: one.ledger.database.reads.fetch(_WAITING))
    await serving
    await one.serve()
    assert await one.queues.aside("live", endpoint) == []
    assert taken(one) == ["clm_a"] * 2


async def test_what_a_process_delivers_that_had_stood_still_holds_nothing_up(one):
    """Another one has set the claim aside meanwhile, and what follows in it."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    awake = asyncio.Event()

    async def late():
        await awake.wait()
        return EndpointAnswer(200)

    one.sink.answers["clm_a"] = late
    await one.claims(partner, "a", stages=2)
    await one.dispatcher.step()
    await eventually(lambda: one.sink.sent)
    await set_aside(one, endpoint)
    awake.set()
    await one.dispatcher.idle()
    await one.serve()
    assert await one.queues.aside("live", endpoint) == []
    assert len(await one.queues.delivered("live", endpoint)) == 3


async def test_resuming_undoes_no_rest(one):
    """A member who pauses and resumes a dead receiver has it asked no more often."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
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


async def test_one_that_is_gone_is_disabled_at_once(one):
    """By 410; the event stays for when it is enabled again."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    one.sink.answers[URL] = EndpointAnswer(410)
    await one.claims(partner, "a", "b")
    await one.serve()
    assert await one.state(partner, endpoint) == "gone"
    await one.pass_time(HOUR, HOUR / 6)
    assert sum(one.sink.tried.values()) == 2
    assert len(await one.queues.open("live", endpoint)) == 2


async def test_one_that_asks_for_time_gets_it(one):
    """By Retry-After, within bounds; it is left alone as a whole."""
    partner = await one.approved()
    await one.endpoint(partner)
    one.sink.answers[URL] = EndpointAnswer(429, 120.0)
    await one.claims(partner, "a")
    await one.serve()
    del one.sink.answers[URL]
    await one.claims(partner, "b")
    await one.pass_time(timedelta(seconds=110), timedelta(seconds=10))
    assert taken(one) == []
    await one.pass_time(timedelta(seconds=30), timedelta(seconds=10))
    assert sorted(taken(one)) == ["clm_a", "clm_b"]


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


async def test_what_was_cut_off_comes_again_with_the_same_id(one):
    """When its lease ends: it may have been taken."""
    partner = await one.approved()
    await one.endpoint(partner)
    hanging = asyncio.Event()
    one.sink.answers[URL] = hanging.wait
    await one.claims(partner, "a")
    await one.dispatcher.step()
    await eventually(lambda: one.sink.sent)
    await one.dispatcher.stop()
    del one.sink.answers[URL]
    await one.serve()
    assert len(one.sink.sent) == 1
    one.now += timedelta(seconds=deliveries.LEASE_SECONDS)
    await one.serve()
    first, second = (headers["webhook-id"] for _, headers, _ in one.sink.sent)
    assert first == second
    assert taken(one) == ["clm_a"]


async def test_an_endpoints_queue_is_bounded(one, monkeypatch):
    """The rest stays in the log, and follows."""
    for module in (deliveries, dispatcher):
        monkeypatch.setattr(module, "OPEN_MAX", 5)
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    one.sink.answers[URL] = None
    await one.claims(partner, *(f"c{nr}" for nr in range(12)))
    await one.serve()
    assert len(await one.queues.open("live", endpoint)) == 5
    del one.sink.answers[URL]
    await one.pass_time(HOUR, HOUR / 60)
    assert len(taken(one)) == 12


async def test_nobody_looks_at_a_full_queue_before_something_in_it_is_due(one, monkeypatch):
    """Of an endpoint that fails: to find that out, all that is in it would be counted each time."""
    for module in (deliveries, dispatcher):
        monkeypatch.setattr(module, "OPEN_MAX", 3)
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    one.sink.answers[URL] = None
    await one.claims(partner, *(f"c{nr}" for nr in range(6)))
    await one.pass_time(24 * HOUR, HOUR / 2)
    waiting = [row["next_attempt_at"] for row in await one.queues.open("live", endpoint)]
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

    pool = SimpleNamespace(fetch=fetch, fetchrow=fetchrow)
    one = dispatcher.Dispatcher(SimpleNamespace(pool=pool, clock=system_clock))
    for _ in range(2):
        await one.step()
    first, second = looks
    assert second - first >= dispatcher.PAUSE_FOR_A_LOOK * 2 * dispatcher.LOOK_SECONDS_FREE


async def test_an_endpoint_can_have_everything_again(one):
    """From any position that it came past, with the same ids; a test event has no position."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    await one.claims(partner, "a", "b")
    await one.serve()
    await one.queues.replay("live", endpoint, 1)
    await one.serve()
    first, again = one.sink.taken[:2], one.sink.taken[2:]
    assert sorted(first) == sorted(again)
    assert len(await one.queues.delivered("live", endpoint)) == 2
    with pytest.raises(Refusal, match="validation_failed"):
        await one.queues.replay("live", endpoint, 100)
    await one.queues.test("live", endpoint)
    await one.follow()
    await one.serve()
    assert msgspec.json.decode(one.sink.sent[-1][2])["type"] == "endpoint.test"
    one.sink.answers[URL] = None
    for _ in range(3):
        await one.queues.test("live", endpoint)
    with pytest.raises(Refusal, match="limit_reached"):
        await one.queues.test("live", endpoint)


async def test_a_removed_endpoint_and_one_of_a_revoked_partner_get_nothing(one):
    """From the next attempt on."""
    partner, revoked = await one.approved(), await one.approved("Revoked")
    endpoint = await one.endpoint(partner)
    await one.endpoint(revoked, OTHER)
    await one.service.partners.revoke(revoked, CAUSE)
    await one.claims(revoked, "x")
    await one.commands.remove(partner, endpoint, CAUSE)
    await one.claims(partner, "y")
    await one.serve()
    assert one.sink.sent == []
    assert await one.queues.states("live", [endpoint]) == {}


async def test_nothing_that_was_queued_meanwhile_outlives_an_endpoint(one):
    """Whoever fills the queue of an endpoint that is removed has committed, or finds none."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    position = (await one.queues.states("live", [endpoint]))[endpoint]["position"]
    await one.commands.remove(partner, endpoint, CAUSE)
    pool = one.ledger.database.background
    async with pool.transaction() as connection:
        note = queries("service.webhooks").note.on(pool.schema)
        places = (position, position + 1, [position + 1])
        assert await connection.fetch(note, endpoint, *places, ["clm_a"], ["x"], one.now)
        removal = asyncio.create_task(one.follow())
        await eventually(lambda: one.ledger.database.reads.fetch(_WAITING))
    await removal
    assert await one.queues.open("live", endpoint) == []


async def test_what_is_our_fault_is_none_of_the_endpoints(one):
    """What cannot be read or signed waits, and no attempt counts; the log says why."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    await one.ledger.database.writes.fetch(_QUEUED, endpoint, one.now)

    async def refuse():
        raise Undelivered("nowhere", "an address is not public")

    one.sink.answers["clm_private"] = refuse
    await one.claims(partner, "a")
    with capture_logs() as logs:
        await one.serve()
        (unread,) = await one.queues.open("live", endpoint)
        assert (unread["attempts"], unread["fault"]) == (0, None)
        assert unread["next_attempt_at"] > one.now
        assert (await one.queues.states("live", [endpoint]))[endpoint]["failing_since"] is None
        assert taken(one) == ["clm_a"]
        await one.claims(partner, "private")
        await one.serve()
        calls = []

        async def secrets():
            calls.append(1)
            if len(calls) <= 3 * RETRIES.attempts_max:
                raise LedgerUnavailable
            return await one.service.secrets.get()

        one.dispatcher.parts = replace(one.dispatcher.parts, secrets=secrets)
        await one.claims(partner, "unsigned")
        await one.pass_time(2 * HOUR, HOUR / 60)
    assert taken(one) == ["clm_a", "clm_unsigned"]
    (newest, _) = await one.queues.delivered("live", endpoint)
    assert (newest["subject"], newest["attempts"]) == ("clm_unsigned", 1)
    said = [(line["event"], line.get("position"), line.get("error_type")) for line in logs]
    assert ("webhook not sent", 3, "LedgerUnavailable") in said
    assert ("webhook events cannot be read", 999, None) in said
    assert ("webhook host refused", 2, "an address is not public") in said


async def test_old_deliveries_are_forgotten(one):
    """After thirty days."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    await one.claims(partner, "a")
    await one.serve()
    one.now += timedelta(days=31)
    one.dispatcher._forgets_at = 0.0  # noqa: SLF001 - an hour of the loop's own clock
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
    partner = await one.approved()
    endpoint = await one.endpoint(partner)

    async def press():
        while True:
            await one.queues.test("live", endpoint)
            await one.follow()
            await one.serve()

    with pytest.raises(Refusal, match="limit_reached"):
        await press()
    assert len(taken(one)) == TESTS_AN_HOUR_MAX


async def test_asking_for_tests_undoes_no_rest(one):
    """A test event that was refused sends nothing else, whatever the endpoint asked for."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
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


def test_attempts_take_three_days_in_all():
    """With waits that grow, and are never quite the same."""
    total = sum((wait_after(nr) for nr in range(1, RETRIES.attempts_max)), timedelta())
    assert timedelta(days=2.9) < total < timedelta(days=3.7)
    assert len({wait_after(20) for _ in range(20)}) > 1
