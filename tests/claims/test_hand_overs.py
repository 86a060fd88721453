"""Hand-overs to processing: each by itself, in its claim's order, and set aside if it fails."""

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial
from uuid import UUID

import psycopg
import pytest

from service.app.background import background
from service.app.bootstrap import Service
from service.claims import hand_overs
from service.claims.hand_overs import HandOvers
from service.core.clock import system_clock
from service.core.retries import ATTEMPTS_MAX
from service.facts.claims import FirstMessagePosted
from service.ledger import service_keys
from service.ledger.following.parking import FOLLOWS, parked
from service.ledger.following.runner import Subscription
from service.ledger.ledger import Append
from service.ledger.queue_runner import CUT_OFF, QueueRunner
from service.mail.transport import mail_transport
from tests.ledger.appending import add_event_key
from tests.ledger.raw_events import RawEvent, write_raw
from tests.ledger.samples import CAUSE
from tests.numbering import number
from tests.patience import PATIENCE_SECONDS, eventually
from tests.world import settings_for

pytestmark = pytest.mark.server
DAY = timedelta(days=1)
UNREADABLE = b"{secret"


class Pipeline:
    """A pipeline that refuses some messages, and never answers about others."""

    def __init__(self):
        self.refused, self.silent = set(), set()
        self.tried, self.taken = Counter(), []

    async def hand_over(self, message):
        """Take a message, refuse it, or hang."""
        self.tried[message.message_id] += 1
        if message.message_id in self.silent:
            await asyncio.Event().wait()
        if message.message_id in self.refused:
            raise ConnectionRefusedError(message.text)
        self.taken.append(message.message_id)


class Setting:
    """The live ledger of a service that follows nothing by itself, and a pipeline."""

    def __init__(self, service):
        self.live, self.now = service.modes["live"].ledger, system_clock()
        self.pipeline = Pipeline()
        (self.queue,) = (one for one in service.parking["live"] if one.name == "processing")
        self.hand_overs = QueueRunner(
            HandOvers(self.live, self.queue, self.pipeline), lambda: self.now
        )

    async def post(self, *names, stream=None):
        """Post messages, each of a claim of its own unless a stream is given, and queue them."""
        for version, name in enumerate(names):
            await post(self.live, name, stream, version)
        while await Subscription(self.live, self.queue).step():
            pass
        self.now = max(self.now, system_clock())

    async def pass_days(self, days=2):
        """Let so many days pass, making what is due after each wait."""
        for _ in range(days * 24):
            self.now += DAY / 24
            while await self.hand_overs.step():
                pass

    async def parked(self):
        """Return positions and errors of what is set aside."""
        return [(one.position, one.error) for one in await parked(self.live.database)]


async def post(live, name, stream=None, after=0):
    """Post a message and number it."""
    stream_id = stream or UUID(bytes=name.encode().rjust(16))
    message = FirstMessagePosted(f"clm_{name}", name, "ptn_1", "ent_1", None)
    async with live.transaction() as transaction:
        await transaction.append(Append(stream_id, after if stream else 0, [message], CAUSE))
    await number(live)


@pytest.fixture
def one(service):
    """Return the setting."""
    return Setting(service)


async def test_a_refused_message_repeats_and_stops_no_other(service, tmp_path):
    """Earlier and later ones leave once, while it is tried again."""
    live, pipeline = service.modes["live"].ledger, Pipeline()
    pipeline.refused = {"c"}
    for name in "abcde":
        await post(live, name)
    followers = background(service, mail_transport(f"file://{tmp_path}"), pipeline)
    followers.start()
    await eventually(lambda: pipeline.tried["c"] > 1)
    await post(live, "f")
    await eventually(lambda: "f" in pipeline.taken)
    await followers.stop()
    assert sorted(pipeline.taken) == list("abdef")
    assert {pipeline.tried[name] for name in "abdef"} == {1}


async def test_one_that_keeps_failing_is_set_aside_and_retried_by_command(one):
    """After about a day of growing waits; its message is not quoted."""
    one.pipeline.refused = {"b"}
    await one.post("a", "b", "c")
    await one.hand_overs.step()
    assert (one.pipeline.taken, await one.parked()) == (["a", "c"], [])
    await one.pass_days()
    assert one.pipeline.tried["b"] == ATTEMPTS_MAX
    assert await one.parked() == [(2, "ConnectionRefusedError")]
    one.pipeline.refused = set()
    assert await one.queue.retry(one.live) == 1
    await one.hand_overs.step()
    assert (one.pipeline.taken, await one.parked()) == (["a", "c", "b"], [])


async def test_the_order_within_a_stream_is_kept(one):
    """What follows a failing message waits for it, is set aside with it, and retried after it."""
    stream = UUID(int=7)
    one.pipeline.refused = {"a1"}
    await one.post("a1", "a2", stream=stream)
    await one.post("b")
    await one.hand_overs.step()
    assert one.pipeline.tried == {"a1": 1, "b": 1}
    await one.pass_days()
    await post(one.live, "a3", stream, 2)
    await one.post()
    assert await one.parked() == [(1, "ConnectionRefusedError"), (2, FOLLOWS), (4, FOLLOWS)]
    one.pipeline.refused = set()
    assert await one.queue.retry(one.live) == 3
    await one.pass_days(1)
    assert one.pipeline.taken == ["b", "a1", "a2", "a3"]


async def test_nothing_that_follows_is_queued_while_a_message_is_set_aside(
    one, database_url, owner
):
    """It waits for who is queueing: what that adds behind it would leave before it."""
    await one.post("a")
    making = HandOvers(one.live, one.queue, one.pipeline)
    (item,) = await making.take(one.now, one.now)
    waits = "select true from pg_stat_activity where wait_event_type = 'Lock' and query like %s"
    with psycopg.connect(database_url) as queueing:
        queueing.execute("select from live.subscriptions where name = 'processing' for update")
        setting_aside = asyncio.create_task(making.set_aside(item, "refused"))
        waiting = partial(owner.execute, waits, ["%subscriptions%"])
        await eventually(lambda: setting_aside.done() or waiting().fetchone())
        assert not setting_aside.done()
    await setting_aside
    assert await one.parked() == [(1, "refused")]


async def test_a_pipeline_that_does_not_answer_is_left_at_the_deadline(one, monkeypatch):
    """A message that hangs is tried again later; those beside it have left."""
    monkeypatch.setattr(hand_overs, "HAND_OVER_SECONDS_MAX", 0.05)
    one.pipeline.silent = {"b"}
    await one.post("a", "b", "c")
    await one.hand_overs.step()
    assert one.pipeline.taken == ["a", "c"]
    one.pipeline.silent = set()
    await one.pass_days(1)
    assert one.pipeline.taken == ["a", "c", "b"]


async def test_a_message_that_ends_the_process_uses_up_no_other_ones_attempts(one):
    """What was tried before leaves alone, so that it is set aside alone."""
    await one.post("a", "b", "c")

    async def end(message):
        if message.message_id == "b":
            raise asyncio.CancelledError
        await Pipeline.hand_over(one.pipeline, message)

    one.pipeline.hand_over = end
    for _ in range(60):
        one.now += DAY / 24
        await _cut_off(one.hand_overs)
    assert await one.parked() == [(2, CUT_OFF)]
    assert set(one.pipeline.taken) == {"a", "c"}


async def test_an_unreadable_message_is_set_aside_and_the_next_one_leaves(one):
    """An event that cannot be decoded stops nobody else's hand-over."""
    await write_raw(one.live, RawEvent(UUID(int=1), 1, "FirstMessagePosted", UNREADABLE))
    await one.post("a")
    await one.post()
    await one.hand_overs.step()
    assert one.pipeline.taken == ["a"]
    assert [position for position, _ in await one.parked()] == [1]


async def test_a_key_that_does_not_open_holds_up_no_other_message(one, owner):
    """Somebody altered it, or the ring lacks its master key: the others leave at once, it waits."""
    for name in "abc":
        stream = UUID(bytes=name.encode().rjust(16))
        key = one.live.master_keys.new_data_key(stream)
        message = FirstMessagePosted(f"clm_{name}", name, "ptn_1", "ent_1", "text")
        async with one.live.transaction() as transaction:
            await transaction.append(Append(stream, 0, [message], CAUSE, key, new_key=True))
    await number(one.live)
    await one.post()
    altered = "update live.data_keys set wrapped = sha256(wrapped) where key_id = %s"
    owner.execute(altered, [UUID(bytes=b"b".rjust(16))])
    await one.hand_overs.step()
    assert sorted(one.pipeline.taken) == ["a", "c"]
    waiting = "select position, attempts from live.hand_overs"
    assert owner.execute(waiting).fetchall() == [(2, 1)]


async def test_a_message_of_a_new_event_key_is_handed_over(
    one, database_url, tmp_path, monkeypatch
):
    """Also by a process that stood still while it began to sign, and has not read it yet."""
    await one.live.binding()
    monkeypatch.setattr(service_keys, "SIGNS_AFTER", timedelta())
    async with Service(
        settings_for(database_url, tmp_path), deadline_seconds=PATIENCE_SECONDS
    ).opened() as other:
        await add_event_key(other)
        await other.secrets.read_events()
        await Setting(other).post("a")
    one.now = system_clock()
    await one.hand_overs.step()
    assert one.pipeline.taken == ["a"]
    assert await one.parked() == []


@pytest.mark.parametrize(
    ("ledger", "name", "topic"),
    [
        ("live", "mail", "OnboardingStarted"),
        ("live", "processing", "FirstMessagePosted"),
        ("accounts", "sandbox", "PartnerApproved"),
    ],
)
async def test_an_unreadable_event_stops_no_follower(service, owner, tmp_path, ledger, name, topic):
    """Mail, processing and the sandbox put it aside, and their checkpoints move on."""
    await write_raw(service.ledger(ledger), RawEvent(UUID(int=1), 1, topic, UNREADABLE))
    followers = background(service, mail_transport(f"file://{tmp_path}"))
    followers.start()
    where = "select position from live.subscriptions where name = %s".replace("live", ledger)
    await eventually(lambda: owner.execute(where, (name,)).fetchone() == (1,))
    await followers.stop()
    found = await parked(service.ledger(ledger).database)
    assert [one.topic for one in found if one.read_model == name] == [topic]


async def _cut_off(making):
    """Make what is due, as a process that may end in the middle of it."""
    task = asyncio.create_task(making.step())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
