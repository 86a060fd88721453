"""The status of read models and subscribers."""

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from service.app.bootstrap import Service
from service.core.clock import system_clock
from service.facts.catalogue import ACCOUNTS
from service.ledger.following.catch_up import CatchUpProjection
from service.ledger.following.runner import Subscription
from service.ledger.following.status import LATER, HeadWatch, progress
from service.ledger.sequencer import Sequencer
from service.ledger.writing import Append
from tests.ledger.samples import CAUSE, plain
from tests.patience import PATIENCE_SECONDS
from tests.world import settings_for, world_on

APPROVED = plain(ACCOUNTS["PartnerApproved"])


class Time:
    """A clock that moves only when told to."""

    def __init__(self):
        self.now = system_clock()

    def __call__(self):
        """Return the time."""
        return self.now

    def pass_(self, seconds):
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def time():
    """Return a clock that the test moves."""
    return Time()


@pytest.fixture
async def service(database_url, tmp_path, time):
    """Return the parts, which follow nothing by themselves."""
    async with Service(
        settings_for(database_url, tmp_path), clock=time, deadline_seconds=PATIENCE_SECONDS
    ).opened() as one:
        yield one


async def append(ledger, count=1):
    """Append events, without numbers."""
    async with ledger.transaction() as transaction:
        await transaction.append(Append(uuid4(), 0, [APPROVED] * count, CAUSE))


async def shown(service, watch):
    """Return the accounts ledger's status: its head, and its projections by name."""
    head = await watch.look()
    found = await progress(service.accounts, service.read_models, head, service.clock)
    return head, {one.name: one for one in found}


async def test_inline_models_have_no_lag_and_others_do(service, time):
    """Lag is in events, unnumbered ones included, and in seconds."""
    watch = HeadWatch(service.accounts, time)
    await append(service.accounts, 3)
    await Sequencer(service.accounts).step()
    time.pass_(2)
    await append(service.accounts)
    time.pass_(1)
    head, found = await shown(service, watch)
    assert (head.size, head.pending, head.oldest_pending_seconds) == (3, 1, 1.0)
    partners, activity = found["partners"], found["activity"]
    assert partners[2:] == ("inline", 1, 1, 3, 0, 0.0, 1.0, False, 0, None)
    assert (activity.kind, activity.position, activity.lag_events) == ("catch-up", 0, 4)
    (following,) = service.catch_up["accounts"]
    assert isinstance(following, CatchUpProjection)
    subscription = Subscription(service.accounts, following)
    assert [await subscription.step() for _ in range(3)] == [1, 3, 0]
    _, found = await shown(service, watch)
    assert found["activity"][2:] == ("catch-up", 1, 1, 3, 1, 1.0, 1.0, False, 0, None)


async def test_a_frozen_sequencer_is_noticed(service, time):
    """Events wait while the head stands still; a moving head or an idle ledger is fine."""
    watch, sequencer = HeadWatch(service.accounts, time), Sequencer(service.accounts)
    await append(service.accounts)
    seen = [(await watch.look()).is_stalled]
    time.pass_(4)
    seen.append((await watch.look()).is_stalled)
    time.pass_(2)
    seen.append((await watch.look()).is_stalled)
    await sequencer.step()
    await append(service.accounts)
    time.pass_(60)
    seen.append((await watch.look()).is_stalled)  # it has moved since the last look
    await sequencer.step()
    time.pass_(3600)
    seen.append((await watch.look()).is_stalled)  # nothing waits
    await append(service.accounts)
    seen.append((await watch.look()).is_stalled)  # it only just began to wait
    assert seen == [False, False, True, False, False, False]


async def test_a_scrape_has_every_read_model_and_stalls(database_url, tmp_path, time):
    """Position, lag and parked streams, by ledger and name."""
    settings = settings_for(database_url, tmp_path)
    async with world_on(settings, tmp_path, follow=False, clock=time) as world:
        await append(world.service.accounts, 3)
        await world.scrape()
        time.pass_(9)
        lines = (await world.scrape()).splitlines()
    of = '{ledger="accounts",name="activity"}'
    assert f"claim_ledger_read_model_lag_events{of} 3.0" in lines
    assert f"claim_ledger_read_model_lag_seconds{of} 9.0" in lines
    assert f"claim_ledger_read_model_position{of} 0.0" in lines
    assert f"claim_ledger_read_model_parked{of} 0.0" in lines
    assert f"claim_ledger_read_model_ahead{of} 0.0" in lines
    assert 'claim_ledger_read_model_lag_events{ledger="live",name="claim_list"} 0.0' in lines
    assert 'claim_ledger_head_stalled{ledger="accounts"} 1.0' in lines
    assert 'claim_ledger_head_stalled{ledger="live"} 0.0' in lines


async def test_rows_of_a_later_version_are_not_ahead_of_the_log(database_url, tmp_path):
    """After going back a release nothing has stopped, and nobody is woken."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        with psycopg.connect(database_url, autocommit=True) as owner:
            owner.execute("insert into live.read_models (name, version) values ('claim_list', 2)")
        lines = (await world.scrape()).splitlines()
    assert 'claim_ledger_read_model_ahead{ledger="live",name="claim_list"} 0.0' in lines


async def test_a_version_that_the_code_does_not_have_is_a_fault(service, database_url, time):
    """After going back to an earlier release, or where somebody altered what is said of rows."""
    one, watch = service.modes["live"].ledger, HeadWatch(service.modes["live"].ledger, time)
    models = [model for model in service.read_models if model.name == "claim_list"]

    async def faults():
        shown = await progress(one, models, await watch.look(), time)
        return [(row.version, row.fault) for row in shown if row.name == "claim_list"]

    with psycopg.connect(database_url, autocommit=True) as owner:
        for version in (1, 99):
            owner.execute(
                "insert into live.read_models (name, version) values ('claim_list', %s)"
                " on conflict (name) do update set version = excluded.version",
                [version],
            )
            assert await faults() == [(version, None if version == 1 else LATER.format(99, 1))]
