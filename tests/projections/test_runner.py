import asyncio
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from service.app.bootstrap import Service
from service.core import outages
from service.facts.catalogue import ACCOUNTS
from service.ledger.database import LedgerUnavailable
from service.ledger.following.runner import Background, Follower, Subscription
from service.ledger.sql import queries
from service.ledger.writing import Append
from tests.ledger.samples import CAUSE, plain
from tests.numbering import number
from tests.patience import PATIENCE_SECONDS, eventually
from tests.world import settings_for

APPROVED = plain(ACCOUNTS["PartnerApproved"])
REGISTER = queries("service.ledger.following").subscription_register


class Remembering:
    """A subscriber that records what it was given, in its checkpoint's transaction."""

    topics = (ACCOUNTS["PartnerApproved"],)
    events_max = 500
    takes_unknown = False

    def __init__(self, name="remembering", *, fail_at=()):
        self.name = name
        self.fail_at = set(fail_at)
        self.handed = []

    async def handle_stored(self, transaction, events):
        """Write one row per event, and fail where told to."""
        for one in events:
            row = f"{self.name}-{one.append_id}"
            await transaction.fetch(REGISTER, row)
        if self.fail_at and events[0].append_id in self.fail_at:
            self.fail_at.discard(events[0].append_id)
            raise ZeroDivisionError
        self.handed += [one.append_id for one in events]


@pytest.fixture
async def accounts(database_url, tmp_path):
    """Return the accounts ledger of a service that follows nothing by itself."""
    async with Service(
        settings_for(database_url, tmp_path), deadline_seconds=PATIENCE_SECONDS
    ).opened() as service:
        yield service.accounts


async def append(ledger, count=1):
    """Append events, number them, and return their append_ids."""
    async with ledger.transaction() as transaction:
        recorded = await transaction.append(Append(uuid4(), 0, [APPROVED] * count, CAUSE))
    await number(ledger)
    return [one.append_id for one in recorded]


def checkpoint(owner, name="remembering"):
    """Return a subscriber's position."""
    found = owner.execute(
        "select position from accounts.subscriptions where name = %s", (name,)
    ).fetchone()
    return None if found is None else found[0]


async def caught_up(*subscriptions):
    """Step all of them until nobody has work."""
    while sum(await asyncio.gather(*(one.step() for one in subscriptions))):
        pass


async def test_a_new_subscriber_starts_at_the_beginning(accounts, owner):
    """It gets every event from the first, however old the ledger is."""
    expected = await append(accounts, 3) + await append(accounts, 2)
    subscriber = Remembering()
    await caught_up(Subscription(accounts, subscriber))
    assert subscriber.handed == expected
    assert checkpoint(owner) == 5


async def test_events_of_other_topics_are_skipped(accounts, owner):
    """The checkpoint moves past them without handing them over."""
    await append(accounts, 3)
    subscriber = Remembering()
    subscriber.topics = (ACCOUNTS["PartnerRevoked"],)
    await caught_up(Subscription(accounts, subscriber))
    assert (subscriber.handed, checkpoint(owner)) == ([], 3)


async def test_the_checkpoint_moves_with_the_writes(accounts, owner):
    """A failing subscriber leaves neither writes nor progress; the next step has both."""
    first, second = await append(accounts, 2)
    subscription = Subscription(accounts, subscriber := Remembering(fail_at=[first]))
    assert await subscription.step() == 1  # registered
    with pytest.raises(ZeroDivisionError):
        await subscription.step()
    written = "select count(*) from accounts.subscriptions where name like 'remembering-%'"
    assert (checkpoint(owner), owner.execute(written).fetchone()) == (0, (0,))
    assert await subscription.step() == 2
    assert (checkpoint(owner), owner.execute(written).fetchone()) == (2, (2,))
    assert subscriber.handed == [first, second]
    assert await subscription.step() == 0


async def test_two_runners_of_one_subscriber_handle_each_event_once(accounts, monkeypatch):
    """While one holds the checkpoint the other skips; none is missed or repeated."""
    monkeypatch.setattr("service.ledger.following.runner.EVENTS_MAX", 7)
    expected = [number for _ in range(10) for number in await append(accounts, 10)]
    subscriber = Remembering()
    await caught_up(*(Subscription(accounts, subscriber) for _ in range(3)))
    assert subscriber.handed == expected


async def test_full_pages_follow_each_other(accounts, monkeypatch):
    """A backlog is not rested from: one step handles all of it, page by page."""
    monkeypatch.setattr("service.ledger.following.runner.EVENTS_MAX", 7)
    expected = await append(accounts, 25)
    subscription = Subscription(accounts, subscriber := Remembering())
    await subscription.step()  # registers
    assert await subscription.step() == 25
    assert subscriber.handed == expected


async def test_what_a_page_passes_over_is_not_sent(accounts):
    """Of a page without its events, a subscriber is told where it ends, and nothing of the rest."""
    await append(accounts, 5)
    page = queries("service.ledger.following").subscription_events
    for topics, positions in (["PartnerRevoked"], [5]), (["PartnerApproved"], [1, 2, 3, 4, 5]):
        rows = await accounts.database.background.fetch(page, 0, 500, topics, None, 1 << 20)
        assert [row["position"] for row in rows] == positions


async def test_subscribers_have_their_own_positions(accounts, owner):
    """One that lags does not delay another."""
    await append(accounts, 2)
    ahead, behind = Remembering("ahead"), Remembering("behind")
    await caught_up(Subscription(accounts, ahead))
    await append(accounts)
    await caught_up(Subscription(accounts, behind))
    assert (checkpoint(owner, "ahead"), checkpoint(owner, "behind")) == (2, 3)


async def test_a_failing_subscriber_is_tried_again_and_misses_nothing(accounts):
    """The fault is logged, and the same events come again, in order."""
    appended = [await append(accounts) for _ in range(5)]
    subscriber = Remembering(fail_at=[appended[0][0]])
    background = Background([(accounts, [subscriber])], [])
    background.start()
    appended.append(await append(accounts))
    await eventually(lambda: len(subscriber.handed) == 6)
    await background.stop()
    assert subscriber.handed == [number for one in appended for number in one]


async def test_a_fault_is_logged_when_it_begins_and_ends(monkeypatch):
    """However often it is met; one of another type is another fault, and a lasting one is shown.

    A step for which it was not time, between two faults, ends none.
    """
    faults = [LedgerUnavailable] * 100 + [ZeroDivisionError] * 100 + [LedgerUnavailable] * 100
    steps = [one for fault in faults for one in (None, fault)]
    ended = asyncio.Event()

    async def step():
        await asyncio.sleep(0)  # as each that asks PostgreSQL lets others run
        follower.wake()
        if len(steps) == 100:
            monkeypatch.setattr(outages, "TELL_SECONDS", 0)
        elif len(steps) < 100:
            monkeypatch.setattr(outages, "TELL_SECONDS", PATIENCE_SECONDS)
        if steps:
            fault = steps.pop()
            if fault is not None:
                raise fault
            return None
        ended.set()
        return 0

    follower = Follower("away", step)
    background = Background([], [follower])
    with capture_logs() as lines:
        background.start()
        await ended.wait()
        await background.stop()
    assert [(line["event"], line.get("error_type")) for line in lines] == [
        ("follower waits", "LedgerUnavailable"),
        ("follower failed", None),
        ("follower waits", "LedgerUnavailable"),
        ("follower goes on", None),
    ]


class Counting(Follower):
    """A loop without work, which counts how often it is told to look for some."""

    woken = 0

    def wake(self):
        """Count."""
        self.woken += 1


async def test_a_subscriber_wakes_only_the_loop_whose_work_it_queues(accounts):
    """Others would ask the database, at each step of each subscriber, for what nobody queued."""
    await append(accounts)
    own, other = (
        Counting(name, _nothing, lambda: None, queue=f"{name}.remembering")
        for name in ("accounts", "live")
    )
    background = Background([(accounts, [Remembering()])], [own, other])
    background.start()
    await eventually(lambda: own.woken)
    await background.stop()
    assert other.woken == 0


def test_the_more_there_was_the_longer_a_follower_rests():
    """One event is followed at once, and many cost few steps."""
    follower = Follower("restless", _nothing)
    rests = [follower.rest_seconds(done) for done in (1, 10, 100, 1000)]
    assert rests == [0.025, 0.07, 0.25, 0.25]


@pytest.mark.parametrize("steps", range(0, 40, 4))
async def test_followers_stop_when_they_are_told(steps):
    """A cancellation that coincides with a wake-up is not lost."""
    follower = Follower("restless", _nothing)
    background = Background([], [follower])
    background.start()
    for _ in range(steps):
        follower.wake()
        await asyncio.sleep(0)
    follower.wake()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await background.stop()


async def _nothing():
    return 0


class Slow(Remembering):
    """A subscriber whose every effect takes a while."""

    events_max = 1

    async def handle_stored(self, transaction, events):
        """Take a while."""
        await asyncio.sleep(0.02)
        await super().handle_stored(transaction, events)


async def test_slow_effects_move_the_checkpoint(accounts, owner):
    """At the time limit completed effects are recorded and do not come again."""
    expected = [number for _ in range(6) for number in await append(accounts)]
    subscription = Subscription(accounts, subscriber := Slow())
    subscription.budget_seconds = 0.03
    await subscription.step()  # registers
    await subscription.step()
    first = checkpoint(owner)
    assert 0 < first < 6
    await caught_up(subscription)
    assert subscriber.handed == expected
