"""A log that was cut, as after a restore: what had followed it further than it goes now."""

from uuid import UUID

import pytest
from structlog.testing import capture_logs

from service.core.clock import system_clock
from service.ledger.following.parking import parked
from service.ledger.following.runner import Follower, NotInLog, Subscription
from service.ledger.following.status import AHEAD, HeadWatch, progress
from tests.projections.brittle_rebuilds import one

__all__ = ["one"]

A, B = UUID(int=1), UUID(int=2)
CUT = """
alter table accounts.log disable trigger user;
delete from accounts.log where position > 2;
alter table accounts.log enable always trigger append_only;
update accounts.head set size = 2, tree = null;
"""


async def _cut(one):
    await one.append(A, 3)
    await one.append(B, 2)
    await one.follow()
    one.owner.execute(CUT)


async def _status(one):
    head = await HeadWatch(one.ledger, system_clock).look()
    found = await progress(one.ledger, [one.model], head, system_clock)
    return next(told for told in found if told.name == "brittle")


async def test_a_subscriber_ahead_of_the_log_stands_still(one):
    """Its events would be passed over, also once the log has grown past it."""
    await _cut(one)
    subscription = Subscription(one.ledger, one.projection)
    with pytest.raises(NotInLog, match="position 5"):
        await subscription.step()
    assert (await _status(one)).fault == AHEAD
    await one.append(UUID(int=3), 9)
    with pytest.raises(NotInLog):
        await subscription.step()
    assert ((await _status(one)).fault, one.checkpoint()) == (AHEAD, 5)


async def test_a_follower_that_stands_still_says_so_once():
    """An error in the log, not one every half second."""
    follower = Follower("accounts.brittle", _no_step)
    with capture_logs() as logs:
        for _ in range(3):
            follower._stand("the log was cut")  # noqa: SLF001 - what a step's NotInLog leads to
    told = [(entry["event"], entry["log_level"], entry["error_type"]) for entry in logs]
    assert told == [("follower stands still", "error", "NotInLog")]


async def _no_step():
    return 0


async def test_a_rebuild_mends_a_read_model_ahead_of_the_log(one):
    """Its rows and its checkpoint are those of the log that there is."""
    await _cut(one)
    await one.rebuild()
    assert (one.rows(), one.checkpoint(), (await _status(one)).fault) == ([1, 2], 2, None)
    await one.append(UUID(int=3), 2)
    await one.follow()
    assert (one.rows(), (await one.verify()).compared.total) == ([1, 2, 3, 4], 0)
    assert await parked(one.ledger.database) == []
