"""Rebuilding and going back where streams are parked, and a log that was cut under a subscriber."""

import json
from uuid import UUID

import psycopg
import pytest
from structlog.testing import capture_logs

from projections.parking import FOLLOWS, parked
from projections.read_model import ReadModel, RebuildRefused
from projections.rebuild import workshop
from projections.runner import Follower, NotInLog, Subscription
from projections.status import AHEAD, HeadWatch, progress
from service.bootstrap import Service
from service.clock import system_clock
from service.ledger.events import Unreadable
from tests.projections.test_catch_up import INSERT, META, Setting
from tests.world import settings_for

A, B = UUID(int=1), UUID(int=2)
DAMAGED = json.dumps({"class_version": 1, "meta": META, "data": {"secret": 1}}).encode()
SPOIL = """
alter table accounts.events disable trigger user;
update accounts.events set state = '{secret' where append_id =
    (select append_id from accounts.log where position = 2);
alter table accounts.events enable always trigger append_only;
"""
CUT = """
alter table accounts.log disable trigger user;
delete from accounts.log where position > 2;
alter table accounts.log enable always trigger append_only;
update accounts.head set size = 2, tree = null;
"""


class Rebuilding(Setting):
    """A brittle read model of accounts, and an operator's commands on it."""

    def __init__(self, service, owner, url):
        super().__init__(service, owner)
        self._url = url
        self.model = ReadModel(self.ledger, self.projector, "catch-up")

    async def rebuild(self):
        """Make it anew."""
        async with workshop(self._url, "accounts") as shop:
            return await shop.rebuild(self.model, _quiet, if_equal=False)

    async def rollback(self):
        """Go back."""
        async with workshop(self._url, "accounts") as shop:
            return await shop.rollback(self.model, _quiet)

    async def verify(self, kind="catch-up"):
        """Compare with a replay."""
        async with workshop(self._url, "accounts") as shop:
            return await shop.verify(self.model._replace(kind=kind), _quiet)


@pytest.fixture
async def one(database_url, tmp_path):
    """Answer a ledger that nobody follows by itself, and a read model of it."""
    with psycopg.connect(database_url, autocommit=True) as owner:
        async with Service(settings_for(database_url, tmp_path)).opened() as service:
            yield Rebuilding(service, owner, database_url)


def _quiet(_positions):
    """Show no progress."""


async def test_there_is_no_way_back_to_rows_that_lack_what_was_retried(one):
    """Parked, rebuilt, retried: the kept rows would be without the event, so they are given up."""
    await one.append(A, 2)
    await one.append(B)
    one.projector.fail_at = {1}
    await one.follow()
    await one.rebuild()
    one.projector.fail_at = set()
    assert await one.projection.retry(one.ledger) == 2
    with pytest.raises(RebuildRefused, match="has not the same parked events"):
        await one.rollback()
    assert (one.rows(), (await one.verify()).compared.total) == ([1, 2, 3], 0)
    await one.rebuild()
    await one.rollback()
    assert one.rows() == [1, 2, 3]


async def test_nor_after_a_rollback_to_the_newer_ones(one):
    """Which rows are kept does not matter; a retry that fails again leaves them."""
    await one.append(A, 2)
    one.projector.fail_at = {1}
    await one.follow()
    await one.rebuild()
    await one.rollback()
    assert await one.projection.retry(one.ledger) == 0
    await one.rollback()
    one.projector.fail_at = set()
    assert await one.projection.retry(one.ledger) == 2
    with pytest.raises(RebuildRefused, match="has not the same parked events"):
        await one.rollback()
    assert one.rows() == [1, 2]


async def test_what_was_parked_after_the_rebuild_is_in_the_rows_gone_back_to(one):
    """They are brought up to date from before it: a retry takes nothing from them."""
    await one.append(B)
    await one.follow()
    await one.rebuild()
    await one.append(A, 2)
    one.projector.fail_at = {2}
    await one.follow()
    one.projector.fail_at = set()
    await one.projection.retry(one.ledger)
    await one.rollback()
    assert one.rows() == [1, 2, 3]


async def test_a_rollback_tells_what_is_live_and_what_is_kept(one):
    """By version and time; going forward again is told apart from going back."""
    await one.append(A)
    await one.follow()
    first = (await one.rebuild()).swapped
    one.projector.version = 2
    second = (await one.rebuild()).swapped
    back, forth = await one.rollback(), await one.rollback()
    assert (first.live.version, first.kept) == (1, (1, None))
    assert (second.live.version, second.kept) == (2, first.live)
    assert (back.live, back.kept) == (first.live, second.live)
    assert (forth.live, forth.kept) == (second.live, first.live)
    assert first.live.at < second.live.at


async def test_a_rebuild_parks_what_it_cannot_read(one):
    """With what follows in its stream, as the follower does; the others are rebuilt."""
    await one.append(A, 3)
    await one.append(B)
    await one.follow()
    one.owner.execute(SPOIL)
    verified = await one.verify()
    done = await one.rebuild()
    seen = [(aside.position, aside.fault) for aside in done.put_aside]
    (first, told), following = seen
    assert (first, following) == (2, (3, FOLLOWS))
    assert told.startswith("Unreadable: it has not the form of an event")
    assert verified.put_aside == done.put_aside
    assert {difference.fault for difference in verified.compared.differences} == {"surplus"}
    assert (await one.parked(), one.rows()) == (seen, [1, 4])
    await one.append(A, after=3)
    await one.follow()
    assert (await one.parked())[-1] == (5, FOLLOWS)
    with pytest.raises(RebuildRefused, match="has not the same parked events"):
        await one.rollback()


async def test_a_rebuild_parks_what_it_cannot_apply(one):
    """A projector that fails at an event, in Python, is no reason to refuse the rest."""
    await one.append(A, 2)
    await one.append(B)
    await one.follow()
    one.projector.fail_at = {1}
    done = await one.rebuild()
    assert [aside.position for aside in done.put_aside] == [1, 2]
    assert one.rows() == [3]
    one.projector.fail_at = set()
    assert await one.projection.retry(one.ledger) == 2
    assert one.rows() == [1, 2, 3]


async def test_an_inline_model_is_not_rebuilt_without_an_event_and_is_verified_without(one):
    """The position and the fault are told, and nothing of what the event holds."""
    await one.append(A)
    one.owner.execute(INSERT, (B, 1, "PartnerApproved", DAMAGED))
    await one.number()
    (partners,) = [model for model in one.service.read_models if model.name == "partners"]
    one.model = partners
    told = r"^position 2 of accounts cannot be read: its data are not those of PartnerApproved"
    with pytest.raises(Unreadable, match=told) as raised:
        await one.rebuild()
    assert "secret" not in str(raised.value)
    verified = await one.verify("inline")
    assert [aside.position for aside in verified.put_aside] == [2]


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
    follower = Follower("accounts.brittle", _no_step, lambda: None)
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
