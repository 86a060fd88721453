"""Deliveries: at least once, in a claim's order, and with the same id when they come again."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from operator import itemgetter

import msgspec
import pytest
from standardwebhooks import Webhook
from structlog.testing import capture_logs

from service.core.errors import Refusal
from service.facts.claims import STAGES
from service.ledger.database import LedgerUnavailable
from service.ledger.queue_runner import CUT_OFF
from service.ledger.sql import Sql, queries
from service.webhooks import deliveries, dispatcher
from service.webhooks.sender import EndpointAnswer, Undelivered
from service.webhooks.signing import signing_keys
from service.webhooks.waits import ENDPOINT_WAIT_SECONDS_MAX, RETRIES
from tests.ledger.samples import CAUSE
from tests.patience import eventually
from tests.webhooks.setting import HOUR, OTHER, URL, taken

pytestmark = pytest.mark.server

CONNECTION = ("entity.connected", "entity.disconnected")
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


async def test_a_row_sends_nothing_elsewhere(one, owner):
    """Where an endpoint is, of which partner and mode, is what its partner's events say."""
    partner, other = await one.approved(), await one.approved("Other")
    await one.endpoint(partner)
    theirs = await one.endpoint(other, OTHER)
    for whose in (partner, other):
        disabled = await one.endpoint(whose, OTHER)
        await one.commands.disable(whose, disabled, "member", CAUSE)
    of_tests = one.commands.new_endpoint_id()
    await one.commands.add(partner, of_tests, "test", OTHER, (), CAUSE)
    await one.follow()
    queue = "insert into live.webhook_queues (endpoint_id, partner_id, position) values (%s, %s, 0)"
    owner.execute(queue, (of_tests, partner))
    await one.claims(partner, "a")
    owner.execute("update accounts.webhook_endpoints set disabled = null")
    owner.execute("update accounts.webhook_endpoints set url = 'https://elsewhere.example.com/'")
    owner.execute("update live.webhook_queues set is_active = true, partner_id = %s", (partner,))
    await one.serve()
    assert {url for url, _, _ in one.sink.sent} == {URL}
    owner.execute(
        "update accounts.webhook_endpoints set partner_id = %s where endpoint_id = %s",
        (partner, theirs),
    )
    await one.claims(partner, "b")
    await one.pass_time(HOUR, HOUR / 4)
    assert {url for url, _, _ in one.sink.sent} == {URL}
    assert taken(one) == ["clm_a", "clm_b"]


async def test_a_changed_endpoint_is_where_its_events_go(one):
    """From the next attempt on, and nowhere once it is disabled."""
    partner, endpoint = await one.subscribed()
    await one.claims(partner, "a")
    await one.serve()
    await one.commands.change(partner, endpoint, OTHER, ["claim.created"], CAUSE)
    await one.claims(partner, "b", stages=1)
    await one.serve()
    await one.commands.disable(partner, endpoint, "member", CAUSE)
    await one.claims(partner, "c")
    await one.pass_time(HOUR, HOUR / 4)
    assert (taken(one), taken(one, OTHER)) == (["clm_a"], ["clm_b"])


async def test_an_endpoint_gets_only_the_types_that_it_wants(one):
    """And goes on behind the others; a test event it gets, too."""
    partner, endpoint = await one.subscribed(types=["claim.stage_changed"])
    await one.claims(partner, "a", "b", stages=1)
    await one.serve()
    await one.queues.test("live", endpoint)
    await one.serve()
    types = [msgspec.json.decode(body)["type"] for _, _, body in one.sink.sent]
    assert types == [*["claim.stage_changed"] * 2, "endpoint.test"]


async def test_what_is_queued_and_not_wanted_any_more_is_not_sent(one):
    """The endpoint failed on the first event of a claim; once it is due, the next one comes."""
    partner, endpoint = await one.subscribed()
    one.sink.answers["clm_a"] = EndpointAnswer(500)
    await one.claims(partner, "a", stages=1)
    await one.serve()
    one.sink.answers.clear()
    await one.commands.change(partner, endpoint, URL, ["claim.stage_changed"], CAUSE)
    await one.pass_time(HOUR / 4, HOUR / 4)
    types = [msgspec.json.decode(body)["type"] for _, _, body in one.sink.sent]
    assert types == ["claim.created", "claim.stage_changed"]


async def test_an_endpoint_finds_what_it_wants_behind_much_else(one, monkeypatch):
    """At one go, however many places in the queue what lies between would take."""
    for module in (deliveries, dispatcher):
        monkeypatch.setattr(module, "OPEN_MAX", 2)
    partner, _ = await one.subscribed(types=["claim.stage_changed"])
    await one.claims(partner, *(f"c{nr}" for nr in range(7)))
    await one.claims(partner, "last", stages=1)
    await one.dispatcher.step()
    await one.dispatcher.idle()
    assert taken(one) == ["clm_last"]


async def test_a_stuck_claim_holds_up_no_other_and_keeps_its_order(one):
    """What follows in the claim waits for it, and comes after it with the ids of the first try."""
    partner, _ = await one.subscribed()
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


def told(one):
    """Return what was sent: type and sequence, with what it is about."""
    sent = [msgspec.json.decode(body) for _, _, body in one.sink.sent]
    return [(event["type"], int(event["sequence"]), event.get("subject")) for event in sent]


@pytest.mark.parametrize("link", ["lnk_1", None])
async def test_events_of_a_connection_follow_one_another_whatever_made_it(one, link):
    """The first is refused for a while; those of another business go on, and all can come again."""
    partner, endpoint = await one.subscribed()
    stuck = link or "entity.connected"
    one.sink.answers[stuck] = EndpointAnswer(500)
    await one.connection(partner, "ent_1", link, None)
    await one.connection(partner, "ent_2", "lnk_2")
    await one.serve()
    await one.connection(partner, "ent_1", "lnk_3")
    await one.serve()
    assert (one.sink.tried[URL, stuck], taken(one)) == (1, ["lnk_2"] * 3)
    one.sink.answers.clear()
    await one.pass_time(HOUR / 60, HOUR / 720)
    first, *found = [each for each in told(one) if each[2] != "lnk_2"]
    assert found == sorted(found, key=itemgetter(1))
    assert (found[0], len(found)) == (first, 8 if link else 7)
    assert await one.queues.open("live", endpoint) == []
    about = await one.queues.about("live", partner, range(1, 99))
    assert about.items() >= {place: subject for _, place, subject in found}.items()
    assert list(about.values()).count("lnk_3") == 3
    one.sink.sent.clear()
    await one.queues.replay("live", endpoint, first[1])
    await one.serve()
    assert [each for each in told(one) if each[2] != "lnk_2"] == found


async def test_what_an_earlier_release_queued_of_a_connection_leaves_as_it_would_have(one, owner):
    """What follows waits for what has the link's name; what has its position's is on its own."""
    partner, endpoint = await one.subscribed()
    one.sink.answers |= dict.fromkeys(("lnk_1", *CONNECTION), EndpointAnswer(500))
    await one.connection(partner, "ent_1", "lnk_1")
    await one.connection(partner, "ent_2", None)
    await one.serve()
    queued = await one.queues.about("live", partner, range(1, 99))
    for place, link in queued.items():
        owner.execute(
            "update live.webhook_deliveries set subject = %s where position = %s",
            (link or f"position {place}", place),
        )
    await one.connection(partner, "ent_1", None)
    tried = one.sink.tried[URL, "lnk_1"]
    await one.serve()
    assert one.sink.tried[URL, "lnk_1"] == tried
    one.sink.answers.clear()
    await one.pass_time(HOUR / 2, HOUR / 720)
    assert await one.queues.open("live", endpoint) == []
    assert sorted(taken(one)) == sorted([*CONNECTION, *["lnk_1"] * 5])
    places = [place for _, place, subject in told(one) if subject == "lnk_1"]
    assert places == sorted(places)


async def set_aside(one, endpoint):
    """Set a claim aside whose first event is being attempted, or was."""
    (head, *_) = await one.queues.open("live", endpoint)
    statement = queries("service.webhooks").set_aside
    values = (endpoint, head["subject"], head["position"], "HTTP 500")
    await one.ledger.database.writes.fetch(statement, *values)


async def test_an_event_that_comes_while_its_claim_is_released_follows_it(one):
    """Whoever queues it sees the claim set aside still, and waits for whoever releases it."""
    partner, endpoint = await one.subscribed()
    one.sink.answers["clm_a"] = EndpointAnswer(500)
    await one.claims(partner, "a")
    await one.serve()
    await set_aside(one, endpoint)
    (aside,) = await one.queues.aside("live", endpoint)
    one.sink.answers.clear()
    await one.moved("a", partner)
    pool = one.ledger.database.background
    async with pool.transaction() as connection:
        release = queries("service.webhooks").release.on(pool.schema)
        rest = ENDPOINT_WAIT_SECONDS_MAX
        await connection.fetch(release, endpoint, aside["position"], one.now, rest)
        serving = asyncio.create_task(one.serve())
        await eventually(lambda: one.ledger.database.reads.fetch(_WAITING))
    await serving
    await one.serve()
    assert await one.queues.aside("live", endpoint) == []
    assert taken(one) == ["clm_a"] * 2


async def test_what_a_process_delivers_that_had_stood_still_holds_nothing_up(one):
    """Another one has set the claim aside meanwhile, and what follows in it."""
    partner, endpoint = await one.subscribed()
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


async def test_what_was_cut_off_comes_again_with_the_same_id(one):
    """When its lease ends: it may have been taken."""
    partner, _ = await one.subscribed()
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


async def test_what_is_cut_off_at_each_attempt_is_set_aside(one, owner):
    """Whatever in it ends the process: it is not attempted once more than anything else."""
    partner = await one.approved()
    endpoint = await one.endpoint(partner)
    one.sink.answers[URL] = None
    await one.claims(partner, "a")
    await one.serve()
    cut_off = "update live.webhook_deliveries set attempts = %s, next_attempt_at = '-infinity'"
    owner.execute(cut_off, [RETRIES.attempts_max])
    await one.serve()
    (aside,) = await one.queues.aside("live", endpoint)
    assert (aside["subject"], aside["fault"]) == ("clm_a", CUT_OFF)
    assert (await one.queues.open("live", endpoint), len(one.sink.sent)) == ([], 1)


async def test_an_endpoint_can_have_everything_again(one):
    """From any position that it came past, with the same ids; a test event has no position."""
    partner, endpoint = await one.subscribed()
    await one.claims(partner, "a", "b")
    await one.serve()
    await one.queues.replay("live", endpoint, 1)
    await one.serve()
    first, again = one.sink.taken[:2], one.sink.taken[2:]
    assert sorted(first) == sorted(again)
    assert len(await one.queues.delivered("live", endpoint)) == 2
    for nowhere in (0, 100):
        with pytest.raises(Refusal, match="validation_failed"):
            await one.queues.replay("live", endpoint, nowhere)
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
    partner, endpoint = await one.subscribed()
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
    partner, endpoint = await one.subscribed()
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
