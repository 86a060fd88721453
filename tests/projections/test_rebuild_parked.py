"""Rebuilding, verifying and going back where streams are parked."""

import asyncio
import json
from uuid import UUID

import pytest

from service.ledger.decoding import StoredEvent
from service.ledger.events import Unreadable
from service.ledger.following.parking import FOLLOWS, NOT_OURS
from service.ledger.rebuild import build as building
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.session import has_left_over, rebuild_session
from service.ledger.sql import queries
from tests.ledger.raw_events import RawEvent, append_with_macs, write_raw
from tests.patience import eventually
from tests.projections.brittle import META
from tests.projections.brittle_rebuilds import one

__all__ = ["one"]

A, B = UUID(int=1), UUID(int=2)
DAMAGED = json.dumps({"class_version": 1, "meta": META, "data": {"secret": 1}}).encode()
SPOIL = """
alter table accounts.events disable trigger user;
update accounts.events set state = '{secret' where append_id =
    (select append_id from accounts.log where position = 2);
alter table accounts.events enable always trigger append_only;
"""
WAITS = """
select 1 from pg_stat_activity
where application_name = 'claim-ledger rebuild' and wait_event_type = 'Lock'
"""
LEFT_OVER = """
create schema if not exists accounts_next;
create table accounts_next.entities as select 'A name' as name;
"""


def _events(pairs):
    return [position for position, _ in pairs]


async def _is_true(one):
    """Return whether rows and parked events are together the log, and the rows as replayed."""
    verified = await one.verify()
    every = sorted([*one.rows(), *_events(await one.parked())])
    same = (verified.compared.total, list(verified.put_aside)) == (0, [])
    return same and every == list(range(1, one.checkpoint() + 1))


async def test_rows_that_lack_what_was_retried_are_gone_back_to_with_it_parked_again(one):
    """Parked, rebuilt, retried: back and forth, each time what the rows lack is parked."""
    await one.append(A, 2)
    await one.append(B)
    one.projector.fail_at = {1}
    await one.follow()
    await one.rebuild()
    one.projector.fail_at = set()
    assert await one.projection.retry(one.ledger) == 2
    await one.rollback()
    assert (one.rows(), await one.parked()) == ([3], [(1, "ZeroDivisionError"), (2, FOLLOWS)])
    await one.rollback()
    assert (one.rows(), await one.parked(), await _is_true(one)) == ([1, 2, 3], [], True)
    await one.rollback()
    assert await one.projection.retry(one.ledger) == 2
    assert (one.rows(), await _is_true(one)) == ([1, 2, 3], True)


async def test_what_came_since_in_a_stream_that_kept_rows_lack_is_parked_with_it(one, monkeypatch):
    """Also page by page: what a rollback that is cut off has passed over is not forgotten."""
    await one.append(A, 2)
    one.projector.fail_at = {1}
    await one.follow()
    await one.rebuild()
    one.projector.fail_at = set()
    await one.projection.retry(one.ledger)
    await one.append(A, 2, after=2)
    await one.append(B, 2)
    one.projector.fail_at = {6}
    await one.follow()
    monkeypatch.setattr(building, "CLOSE_POSITIONS", 0)
    monkeypatch.setattr(building, "PAGE_POSITIONS", 1)
    with pytest.raises(ZeroDivisionError):
        await one.rollback(lambda _positions: 1 // (one.kept_at() != 4))
    assert (one.rows(), one.kept_at()) == ([1, 2, 3, 4, 5], 4)
    await one.rollback()
    assert (one.rows(), _events(await one.parked())) == ([5], [1, 2, 3, 4, 6])
    one.projector.fail_at = set()
    assert await one.projection.retry(one.ledger) == 5
    assert (one.rows(), await _is_true(one)) == ([1, 2, 3, 4, 5, 6], True)


async def test_a_rebuild_that_would_lose_rows_changes_nothing(one):
    """Code that fails at everything is found by it, and leaves the rows, the parked, the way back.

    What was parked before stays parked and is no reason against it.
    """
    await one.append(A, 2)
    await one.append(B)
    one.projector.fail_at = {1}
    await one.follow()
    first = await one.rebuild()
    before = await one.parked()
    one.projector.fail_at = {1, 3}
    done = await one.rebuild()
    assert (first.put_aside, done.swapped, len(done.put_aside)) == ((), None, 1)
    assert done.put_aside[0][:1] + done.put_aside[0][2:] == (3, "ZeroDivisionError")
    assert (one.rows(), await one.parked(), one.left_over()) == ([3], before, 0)
    assert (await one.rollback()).live == first.swapped.kept
    assert (one.rows(), await one.parked()) == ([3], before)


async def test_an_event_that_comes_in_meanwhile_and_cannot_be_applied_refuses_the_rebuild(
    one, monkeypatch
):
    """After the comparison, too: the follower has applied it, so the live rows have it."""
    await one.append(A)
    await one.follow()
    compare = building.Builder.compare

    async def and_then_comes_one(builder, progress):
        answer = await compare(builder, progress)
        await one.append(B)
        await one.follow()
        one.projector.fail_at = {2}
        return answer

    monkeypatch.setattr(building.Builder, "compare", and_then_comes_one)
    with pytest.raises(RebuildRefused, match="position 2 cannot be applied: ZeroDivisionError"):
        await one.rebuild()
    assert (one.rows(), await one.parked(), one.left_over()) == ([1, 2], [], 0)


async def test_one_goes_back_from_rows_that_code_parked_everything_of(one):
    """What `--park` put aside is in the kept rows, and what came since is taken up by a retry."""
    await one.append(A, 2)
    await one.append(B)
    await one.follow()
    one.projector.fail_at = set(range(1, 9))
    assert len((await one.rebuild(park=True)).put_aside) == 3
    await one.append(B, after=1)
    await one.follow()
    assert (one.rows(), _events(await one.parked())) == ([], [1, 2, 3, 4])
    assert await one.projection.retry(one.ledger) == 0
    one.projector.fail_at = set()
    await one.rollback()
    assert (one.rows(), await one.parked()) == ([1, 2, 3], [(4, FOLLOWS)])
    assert await one.projection.retry(one.ledger) == 1
    assert (one.rows(), await _is_true(one)) == ([1, 2, 3, 4], True)
    await one.rollback()
    assert (one.rows(), _events(await one.parked())) == ([], [1, 2, 3, 4])


async def test_a_verification_tells_what_is_parked(one):
    """Rows and replay are equal without it, so its streams and events are counted."""
    await one.append(A, 2)
    await one.append(B)
    one.projector.fail_at = {1}
    await one.follow()
    verified = await one.verify()
    assert (verified.compared.total, verified.put_aside, verified.parked) == (0, (), (1, 2))


async def test_a_verification_that_fails_leaves_no_tables(one):
    """They are copies of rows: of names and hashes, too."""
    await one.append(A)
    await one.follow()

    def fail(_positions):
        assert one.left_over() == 1
        raise ZeroDivisionError

    async with rebuild_session(one.url, "accounts") as shop:
        with pytest.raises(ZeroDivisionError):
            await shop.verify(one.model, fail)
    assert one.left_over() == 0


async def test_tables_of_which_nobody_takes_care_are_cleared(one):
    """By the next who asks for the state, and by whoever works on the ledger; not under them."""
    for make, clear in ((LEFT_OVER, one.clear_left_over), (LEFT_OVER, one.work)):
        one.owner.execute(make)
        assert await has_left_over(one.ledger)
        await clear()
        assert not await has_left_over(one.ledger)
    async with rebuild_session(one.url, "accounts"):
        one.owner.execute("create table accounts_next.activity (like accounts.activity)")
        await one.clear_left_over()
        assert one.left_over() == 1


async def test_what_was_parked_after_the_rebuild_is_in_the_rows_gone_back_to(one):
    """They are brought up to date from before it: a retry takes nothing from them."""
    await one.append(B)
    await one.follow()
    await one.rebuild()
    await one.append(A, 2)
    await one.follow(failing={2})
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
    done = await one.rebuild(park=True)
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
    await one.rollback()
    assert (one.rows(), await one.parked()) == ([1, 2, 3, 4], [(5, FOLLOWS)])


async def test_a_rebuild_parks_what_it_cannot_apply(one):
    """A projector that fails at an event, in Python, is no reason to refuse the rest."""
    await one.append(A, 2)
    await one.append(B)
    await one.follow()
    one.projector.fail_at = {1}
    done = await one.rebuild(park=True)
    assert [aside.position for aside in done.put_aside] == [1, 2]
    assert one.rows() == [3]
    one.projector.fail_at = set()
    assert await one.projection.retry(one.ledger) == 2
    assert one.rows() == [1, 2, 3]


async def test_an_inline_model_is_not_rebuilt_without_an_event_and_is_verified_without(one):
    """The position and the fault are told, and nothing of what the event holds."""
    await one.append(A)
    await write_raw(one.ledger, RawEvent(B, 1, "PartnerApproved", DAMAGED))
    await one.number()
    (partners,) = [model for model in one.service.read_models if model.name == "partners"]
    one.model = partners
    told = r"^position 2 of accounts cannot be read: its data are not those of PartnerApproved"
    with pytest.raises(Unreadable, match=told) as raised:
        await one.rebuild()
    assert "secret" not in str(raised.value)
    verified = await one.verify("inline")
    assert [aside.position for aside in verified.put_aside] == [2]


async def test_a_rebuild_leaves_out_what_somebody_put_into_the_log(one):
    """By the rights of a ledger's login: an inline model is not rebuilt with it, others without."""
    await one.append(A)
    await one.number()
    (state,) = one.owner.execute("select state from accounts.events").fetchone()
    async with one.ledger.transaction() as transaction:
        forged = RawEvent(B, 1, "PartnerApproved", state)
        (append_id,) = await append_with_macs(transaction, [forged], [None])
    one.owner.execute("set role claim_ledger_accounts")
    one.owner.execute("delete from accounts.pending")
    one.owner.execute("insert into accounts.log values (2, %s, sha256(''))", [append_id])
    one.owner.execute("update accounts.head set size = 2")
    await one.follow()
    one.owner.execute("delete from accounts.parked")
    one.owner.execute("reset role")
    refused, parked = await one.rebuild(), await one.rebuild(park=True)
    assert (refused.swapped, one.rows(), await one.parked()) == (None, [1], [(2, NOT_OURS)])
    assert [(aside.position, aside.fault) for aside in parked.put_aside] == [(2, NOT_OURS)]
    (one.model,) = [model for model in one.service.read_models if model.name == "partners"]
    with pytest.raises(RebuildRefused, match="position 2: this service did not write it"):
        await one.rebuild()
    assert [aside.position for aside in (await one.verify("inline")).put_aside] == [2]


async def test_a_swap_that_waits_for_a_worker_is_at_the_position_to_which_that_one_comes(one):
    """The log grew meanwhile, and the worker handled that: the kept rows have it, too."""
    following = queries("service.ledger.following")
    await one.append(A, 2)
    await one.follow()
    async with one.ledger.transaction() as worker:
        await worker.fetch(following.subscription_wait, "brittle")
        rebuilding = asyncio.create_task(one.rebuild())
        await eventually(lambda: one.owner.execute(WAITS).fetchone() is not None)
        await one.append(B)
        topics = [topic.__name__ for topic in one.projection.topics]
        rows = await worker.fetch(following.subscription_events, 2, 500, topics, None, 1 << 20)
        await one.projection.handle_stored(worker, [StoredEvent(*row) for row in rows])
        await worker.fetch(following.subscription_move, "brittle", 3)
    done = await rebuilding
    assert (done.swapped.position, one.kept_at(), one.checkpoint()) == (3, 3, 3)
    await one.append(A, after=2)
    await one.follow()
    await one.rollback()
    assert (one.rows(), await _is_true(one)) == ([1, 2, 3, 4], True)
