"""A bad event parks its stream; a fault outside the event stops the follower."""

import asyncio
import json
from collections import defaultdict
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest

from service.app.bootstrap import Service
from service.ledger.database import LedgerUnavailable
from service.ledger.encryption import KeyUnknown
from service.ledger.following.parking import FOLLOWS, RetryRefused
from service.ledger.following.runner import Subscription
from service.ledger.sql import queries
from tests.ledger.raw_events import RawEvent, write_raw
from tests.ledger.samples import CAUSE
from tests.patience import PATIENCE_SECONDS
from tests.projections.brittle import META, Setting
from tests.world import service_on, settings_for

pytestmark = pytest.mark.followed

BAD_STATES = {
    "unknown topic": ("NoSuchThing", {"class_version": 1, "data": {}}),
    "later version": ("PartnerApproved", {"class_version": 9, "data": {}}),
    "no upcast": ("PartnerApproved", {"class_version": 0, "data": {}}),
    "field missing": ("PartnerApproved", {"class_version": 1, "data": {}}),
    "no meta": ("PartnerApproved", {"class_version": 1, "meta": 1, "data": {}}),
    "no JSON": ("PartnerApproved", b"{secret"),
}


@pytest.fixture
async def one(database_url, tmp_path, owner):
    """Return a ledger and a brittle read model of it."""
    async with Service(
        settings_for(database_url, tmp_path), deadline_seconds=PATIENCE_SECONDS
    ).opened() as service:
        yield Setting(service, owner)


A, B = UUID(int=1), UUID(int=2)


async def test_a_bad_event_parks_its_stream_and_no_other(one):
    """Later events of its stream wait in order; other streams continue.

    Whether it fails in Python or in the database.
    """
    for start, (error, described) in enumerate(
        (
            (ZeroDivisionError("secret"), "ZeroDivisionError"),
            (None, "NotNullViolationError"),
        )
    ):
        bad, good, first = UUID(int=10 + start), UUID(int=20 + start), 5 * start + 1
        await one.append(bad, 2)
        await one.append(good, 2)
        await one.append(bad, 1, after=2)
        one.projector.error, one.projector.fail_at = error, {first + 1}
        await one.follow()
        assert one.rows()[-3:] == [first, first + 2, first + 3]
        assert one.checkpoint() == first + 4
        assert (await one.parked())[-2:] == [(first + 1, described), (first + 4, FOLLOWS)]


async def test_later_events_of_a_parked_stream_wait_without_being_tried(one):
    """Across batches nothing overtakes the failed event."""
    await one.append(A)
    await one.follow(failing={1})
    await one.append(B)
    await one.append(A, after=1)
    await one.follow()
    assert (one.rows(), await one.parked()) == ([2], [(1, "ZeroDivisionError"), (3, FOLLOWS)])


async def test_a_long_error_of_somebody_else_is_not_read(one, owner):
    """A ledger's login can write one of hundreds of megabytes, which takes a few on disk."""
    await one.append(A)
    await one.follow(failing={1})
    for size in (4096, 4097):
        owner.execute("update accounts.parked set error = repeat('x', %s)", [size])
        ((_, error),) = await one.parked()
        assert len(error) == (size if size == 4096 else 0)


async def test_an_event_that_cannot_be_decoded_is_parked(one):
    """The fault is stored without content; the rest of the log continues."""
    for number, (topic, state) in enumerate(BAD_STATES.values(), 100):
        raw = state if isinstance(state, bytes) else json.dumps({"meta": META} | state).encode()
        await write_raw(one.ledger, RawEvent(UUID(int=number), 1, topic, raw))
        await one.append(UUID(int=number), after=1)
    await one.append(B)
    await one.follow()
    parked = await one.parked()
    faults = dict(zip(BAD_STATES, (error for _, error in parked[::2]), strict=True))
    assert {fault.partition(":")[0] for fault in faults.values()} == {"Unreadable"}, faults
    assert not any("secret" in fault for fault in faults.values())
    assert {error for _, error in parked[1::2]} == {FOLLOWS}
    last = 2 * len(BAD_STATES) + 1
    assert [position for position, _ in parked] == list(range(1, last))
    assert (one.rows(), one.checkpoint()) == ([last], last)


async def test_an_undecryptable_event_is_parked(one):
    """Its key exists, but decryption fails: the event is at fault."""
    service = one.service
    await service.partners.add("Partner", "p@example.com", CAUSE)
    row = one.owner.execute("select originator_id, topic, state from accounts.events").fetchone()
    state = json.loads(row[2])
    moved = RawEvent(row[0], 2, row[1], json.dumps(state).encode())  # the box is of version 1
    await write_raw(one.ledger, moved)
    await one.number()
    one.projector.reads_personal = True
    await one.follow()
    text = "DecryptionFailed: the box does not open with this key"
    assert (await one.parked(), one.rows()) == ([(2, text)], [1])


async def test_a_missing_master_key_parks_nothing(one, database_url, tmp_path):
    """The follower waits for the ring to be completed and continues from there."""
    await one.service.partners.add("Partner", "p@example.com", CAUSE)
    await one.append(B)
    one.projector.reads_personal = True
    settings = settings_for(database_url, tmp_path, MASTER_KEYS="B" * 42 + "A=")
    async with service_on(settings) as other:
        await Subscription(one.ledger, one.projection).step()  # registers
        subscription = Subscription(other.accounts, one.projection)
        with pytest.raises(KeyUnknown):
            await subscription.step()
    assert (await one.parked(), one.checkpoint()) == ([], 0)
    await one.follow()
    assert one.rows() == [1, 2]


async def test_a_database_that_is_away_parks_nothing(one):
    """No event is at fault: the same events are tried again."""
    await one.append(A, 2)
    await Subscription(one.ledger, one.projection).step()
    for error in (
        LedgerUnavailable("away"),
        asyncpg.CannotConnectNowError("away"),
        asyncpg.DiskFullError("full"),
    ):
        one.projector.error, one.projector.fail_at = error, {2}
        with pytest.raises(LedgerUnavailable):
            await one.follow()
        assert (await one.parked(), one.rows(), one.checkpoint()) == ([], [], 0)
    one.projector.fail_at = set()
    await one.follow()
    assert one.rows() == [1, 2]


async def test_a_missing_table_parks_nothing(one):
    """Every event would fail alike, which is for the operator to fix."""
    await one.append(A)
    one.owner.execute("alter table accounts.activity rename to elsewhere")
    with pytest.raises(asyncpg.UndefinedTableError):
        await one.follow()
    one.owner.execute("alter table accounts.elsewhere rename to activity")
    assert (await one.parked(), one.checkpoint()) == ([], 0)


async def test_a_retry_takes_streams_up_in_order(one):
    """Once fixed, waiting events are applied in order, and none is left."""
    await one.append(A, 3)
    await one.append(B, 2)
    one.projector.fail_at = {1, 4}
    await one.follow()
    one.projector.fail_at, one.projector.applied = set(), defaultdict(list)
    assert await one.projection.retry(one.ledger) == 5
    assert (await one.parked(), one.rows()) == ([], [1, 2, 3, 4, 5])
    assert dict(one.projector.applied) == {A: [1, 2, 3], B: [4, 5]}
    await one.append(A, after=3)
    await one.follow()
    assert one.rows() == [1, 2, 3, 4, 5, 6]


async def test_a_retry_keeps_what_fails_again(one):
    """What can be applied is; the event that fails now parks the rest of its stream."""
    await one.append(A, 4)
    one.projector.fail_at = {1}
    await one.follow()
    one.projector.fail_at = {3}
    assert await one.projection.retry(one.ledger) == 2
    assert (one.rows(), await one.parked()) == ([1, 2], [(3, "ZeroDivisionError"), (4, FOLLOWS)])
    assert await one.projection.retry(one.ledger) == 0


async def test_a_retry_of_one_position_takes_up_its_stream_alone(one):
    """Any position identifies its stream; other streams are unaffected."""
    await one.append(A, 2)
    await one.append(B)
    await one.follow(failing={1, 3})
    assert await one.projection.retry(one.ledger, 2) == 2
    assert (one.rows(), await one.parked()) == ([1, 2], [(3, "ZeroDivisionError")])


async def test_a_long_stream_is_retried_in_several_transactions(one, monkeypatch):
    """Each transaction applies a part of the stream."""
    monkeypatch.setattr("service.ledger.following.catch_up.EVENTS_MAX", 3)
    await one.append(A, 10)
    await one.follow(failing={1})
    assert await one.projection.retry(one.ledger) == 10
    assert (await one.parked(), one.rows()) == ([], list(range(1, 11)))


async def test_a_retry_waits_for_the_follower(one, database_url):
    """It needs the checkpoint's lock, as events could be parked meanwhile."""
    await one.append(A)
    await one.follow(failing={1})
    with psycopg.connect(database_url) as follower:
        follower.execute("select * from accounts.subscriptions where name = 'brittle' for update")
        retry = asyncio.create_task(one.projection.retry(one.ledger))
        await asyncio.sleep(0.3)
        assert (retry.done(), one.rows()) == (False, [])
    assert (await retry, one.rows()) == (1, [1])


async def test_a_retry_is_refused_during_a_rebuild(one, owner):
    """The swap would lose its rows, because a rebuild leaves parked events out."""
    await one.append(A)
    await one.follow(failing={1})
    hold = queries("service.ledger.rebuild").try_lock.on("accounts").replace("$1", "%s")
    assert owner.execute(hold, ("accounts",)).fetchone() == (True,)
    with pytest.raises(RetryRefused):
        await one.projection.retry(one.ledger)
    assert (one.rows(), len(await one.parked())) == ([], 1)
    owner.execute("select pg_advisory_unlock_all()")
    assert await one.projection.retry(one.ledger) == 1


async def test_a_retry_and_the_follower_do_not_interleave(one):
    """Arriving events are parked or applied: none twice, none lost."""
    stream, total = uuid4(), 60
    await one.append(stream)
    one.projector.fail_at = {1}
    await one.follow()

    async def come_in():
        for version in range(1, total):
            await one.append(stream, after=version)
            await one.follow()

    async def take_up():
        for _ in range(30):
            await one.projection.retry(one.ledger)
            await asyncio.sleep(0.01)
            one.projector.fail_at = set()

    await asyncio.gather(come_in(), take_up())
    await one.projection.retry(one.ledger)
    assert (await one.parked(), one.rows()) == ([], list(range(1, total + 1)))


async def test_an_inline_projector_that_fails_refuses_the_write(world, owner, monkeypatch):
    """The caller gets the error, and nothing is written."""
    partner, entity_id = await world.connected()
    ledger = world.service.modes["live"].ledger
    monkeypatch.setattr(ledger, "projectors", [*ledger.projectors, _Refusing()])
    answer = await partner.claim(entity_id, message="m")
    query = "select count(*) from live.events where topic = 'ClaimCreated'"
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert set(answer.json()) == {"error", "code", "message"}
    assert owner.execute(query).fetchone() == (0,)
    assert owner.execute("select count(*) from live.claim_list").fetchone() == (0,)
    monkeypatch.undo()
    assert (await partner.claim(entity_id, message="m")).status_code == 201


class _Refusing:
    name, version = "refusing", 1
    tables, topics, reads_personal = (), (), False

    def project(self, recorded):
        """Fail at every event."""
        raise ZeroDivisionError(str(recorded.position))
