"""Mails and hand-overs while their person is erased: waited for, or never begun."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from service.claims.hand_overs import HandOvers
from service.core.clock import system_clock
from service.facts.entities import entity_stream
from service.facts.passkeys import passkeys_stream
from service.ledger import limits
from service.ledger.effects import effect_lock
from service.ledger.following.runner import Subscription
from service.ledger.ledger import Ledger
from service.ledger.queue_runner import QueueRunner
from service.ledger.sequencer import Sequencer
from service.privacy import erasures
from service.privacy.erasure_list import ErasureList
from tests.mail.noted import note_account_mail, note_mail, onboarding
from tests.patience import eventually
from tests.sessions import session_of
from tests.world import STAFF, World, settings_for, world_on

EMAIL = "person@example.com"
LOCK_SECONDS = 0.02
WAITING = (
    "select pid, xact_start from pg_stat_activity"
    " where wait_event_type = 'Lock' and datname = current_database()"
)
LOSE = (
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
    " where state = 'idle in transaction' and datname = current_database()"
)
OUTBOXES = (
    "select state, attempts from live.mail_outbox"
    " union all select state, attempts from accounts.mail_outbox"
)


class Gate:
    """A mail server and a pipeline that take nothing until they may."""

    def __init__(self) -> None:
        self.asked, self.opened, self.taken = asyncio.Event(), asyncio.Event(), []

    async def send(self, message):
        """Take a mail."""
        self.asked.set()
        await self.opened.wait()
        self.taken.append(message)

    hand_over = send


class Effect(NamedTuple):
    """What is due: how it is done, whose it is, and what erases them."""

    step: Callable[[], Awaitable[int]]
    whose: UUID
    erase: Callable[[], Awaitable[object]]


@pytest.fixture
async def world(database_url, tmp_path) -> AsyncGenerator[World, None]:
    """Return a world with an erasure list, whose log nothing follows by itself."""
    settings = settings_for(database_url, tmp_path, ARCHIVE_URL=(tmp_path / "list").as_uri())
    async with world_on(settings, tmp_path, follow=False, background_size=4) as one:
        yield one


def erasing(world, subject):
    """Return what erases a subject."""
    parts = world.service.privacy(ErasureList(world.service.archive, world.service.secrets.get))[
        "live"
    ]
    return lambda: parts.erasures.erase(subject, "case 1", STAFF)


async def subject_of(world, **ids):
    """Return an entity or a claim as a subject."""
    parts = world.service.privacy(ErasureList(world.service.archive, world.service.secrets.get))[
        "live"
    ]
    ((kind, one),) = ids.items()
    return await getattr(parts.subjects, kind)(one)


async def onboarding_mail(world, gate):
    """Return the mail with the magic link."""
    partner = await world.partner()
    answer = await partner.call("POST", "/onboardings", json=onboarding())
    row = await world.service.modes["live"].onboarding_list.by_id(answer.json()["onboarding_id"])
    outbox = replace(await note_mail(world), transport=gate)
    subject = await subject_of(world, entity=row["entity_id"])
    return Effect(outbox.step, subject.stream_id, erasing(world, subject))


async def stage_mail(world, gate):
    """Return a mail about the stage of an entity's claim."""
    partner, live = await world.partner(), world.service.modes["live"]
    entity_id = await live.entities.add("Bakery", EMAIL, None, STAFF)
    await partner.connect(entity_id)
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    await live.entities.choose_stage_mails(entity_id, STAFF, wanted=True)
    await live.claims.move(claim_id, "negotiation", STAFF)
    outbox = replace(await note_mail(world), transport=gate)
    subject = await subject_of(world, entity=entity_id)
    return Effect(outbox.step, entity_stream("live", entity_id), erasing(world, subject))


async def passkey_mail(world, gate):
    """Return a notice of a business's person about their passkey."""
    service = world.service
    await service.modes["live"].entities.add("Bakery", EMAIL, None, STAFF)
    person = (await session_of(service, EMAIL)).person
    await service.passkeys.add(person.person_id, b"id", b"key", STAFF)
    outbox = replace(await note_account_mail(world), transport=gate)
    address = bytes.fromhex(person.address_hash)
    stream = passkeys_stream(person.person_id)
    return Effect(outbox.step, stream, lambda: service.sessions.forget(address))


async def hand_over(world, gate):
    """Return the hand-over of a claim's first message."""
    work, subject = await hand_overs(world, gate)
    step = QueueRunner(work, world.service.clock).step
    return Effect(step, subject.stream_id, erasing(world, subject))


async def hand_overs(world, gate):
    """Return a queue with one hand-over, and its claim as a subject."""
    partner, live = await world.partner(), world.service.modes["live"].ledger
    made = await partner.claim(await partner.connected_entity(), message="Owes for bread.")
    await Sequencer(live).step()
    queue = world.service.parked_by("live", "processing")
    while await Subscription(live, queue).step():
        pass
    return HandOvers(live, queue, gate), await subject_of(world, claim=made.json()["claim_id"])


EFFECTS = (onboarding_mail, stage_mail, passkey_mail, hand_over)


@pytest.mark.parametrize("due", EFFECTS)
async def test_an_erasure_waits_for_what_is_on_its_way(world, owner, due):
    """It ends after that has left."""
    gate = Gate()
    one = await due(world, gate)
    leaving = asyncio.create_task(one.step())
    await gate.asked.wait()
    erased = asyncio.create_task(one.erase())
    await eventually(lambda: erased.done() or owner.execute(WAITING).fetchall())
    assert not erased.done()
    gate.opened.set()
    await asyncio.gather(leaving, erased)
    assert len(gate.taken) == 1


async def test_an_erasure_keeps_its_place_in_the_line(world, owner, monkeypatch):
    """For longer than other work waits for a lock: mails that are begun meanwhile come after it."""
    monkeypatch.setattr(limits, "BACKGROUND_LOCK_SECONDS", LOCK_SECONDS)
    gate = Gate()
    one = await hand_over(world, gate)
    leaving = asyncio.create_task(one.step())
    await gate.asked.wait()
    erased = asyncio.create_task(one.erase())
    waiting = await eventually(lambda: owner.execute(WAITING).fetchall())
    await asyncio.sleep(10 * LOCK_SECONDS)
    assert owner.execute(WAITING).fetchall() == waiting
    gate.opened.set()
    await asyncio.gather(leaving, erased)


async def test_an_erasure_that_has_waited_has_time_for_what_comes_after(world, monkeypatch):
    """As long as for another lock, at least, however long a mail took."""
    decide, given = Ledger.decide, []

    async def noted(ledger, attempt, *, background=None):
        given.append(background)
        return await decide(ledger, attempt, background=background)

    monkeypatch.setattr(Ledger, "decide", noted)
    _, subject = await hand_overs(world, Gate())
    del given[:]
    await erasing(world, subject)()
    assert given[0] > erasures.SECONDS_MAX + limits.BACKGROUND_LOCK_SECONDS


@pytest.mark.parametrize("due", EFFECTS)
async def test_nothing_leaves_while_an_erasure_is_at_it(world, owner, due):
    """Nor is that an attempt of the mail's own; a hand-over is due again after its lease."""
    gate = Gate()
    gate.opened.set()
    one = await due(world, gate)
    owner.execute("select pg_advisory_lock(%s)", [effect_lock(one.whose)])
    await one.step()
    assert gate.taken == []
    assert set(owner.execute(OUTBOXES).fetchall()) <= {("waiting", 0)}
    owner.execute("select pg_advisory_unlock_all()")
    await one.erase()


async def test_a_hand_over_counts_that_was_made_while_its_locks_were_lost(world, owner):
    """With their connection: it is not made again."""
    gate = Gate()
    one = await hand_over(world, gate)
    leaving = asyncio.create_task(one.step())
    await gate.asked.wait()
    assert owner.execute(LOSE).fetchall() == [(True,)]
    gate.opened.set()
    assert await leaving == 1
    assert len(gate.taken) == 1
    assert owner.execute("select count(*) from live.hand_overs").fetchone() == (0,)


async def test_a_message_is_read_when_no_erasure_can_be_in_between(world):
    """Of a claim that was erased after its hand-over was taken, nothing is handed over but ids."""
    work, subject = await hand_overs(world, Gate())
    now = system_clock()
    items = await work.take(now, now + timedelta(minutes=1))
    await erasing(world, subject)()
    async with work.held(items) as (item,):
        assert (item.recorded.event.text, item.fault) == (None, None)


async def test_mail_that_is_queued_after_the_erasure_is_obsolete(world, owner):
    """Nothing is wrong with it: it is not given up, and no error is logged."""
    partner = await world.partner()
    answer = await partner.call("POST", "/onboardings", json=onboarding())
    row = await world.service.modes["live"].onboarding_list.by_id(answer.json()["onboarding_id"])
    await erasing(world, await subject_of(world, entity=row["entity_id"]))()
    outbox = await note_mail(world)
    with capture_logs() as lines:
        assert await outbox.step() == 1
    assert [line for line in lines if line["log_level"] != "info"] == []
    assert owner.execute("select state from live.mail_outbox").fetchall() == [("obsolete",)]


@pytest.mark.parametrize("due", [onboarding_mail, stage_mail])
async def test_the_hash_goes_by_which_mails_were_counted(world, owner, due):
    """Whatever they were about."""
    gate = Gate()
    gate.opened.set()
    one = await due(world, gate)
    await one.step()
    counted = "select count(*) from live.mail_recipients"
    assert owner.execute(counted).fetchone() == (1,)
    await one.erase()
    assert owner.execute(counted).fetchone() == (0,)


async def test_waiting_stage_mail_is_cancelled(world, owner):
    """It is counted among the mails that the erasure stopped."""
    one = await stage_mail(world, Gate())
    assert (await one.erase()).mail == 1
    assert owner.execute("select state from live.mail_outbox").fetchall() == [("obsolete",)]
