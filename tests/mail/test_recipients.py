"""Partners fill nobody's mailbox: what is beyond a few mails a day is withheld, and shown."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from service.core.ids import stream_id
from service.ledger.service_keys import EventRoots, Secrets
from service.ledger.writing import lock_number
from service.mail import outbox
from service.mail.recipients import ALL_MAX, PARTNER_MAX, PERIOD
from tests.mail.noted import mails, note_mail, onboarding
from tests.world import settings_for, world_on

SECRETS = Secrets(b"p", b"l", b"k", EventRoots({1: b"e"}, since_start=True, signing=1))


class Moment:
    """The time of a test."""

    def __init__(self):
        self.now = datetime.now(UTC)

    def __call__(self):
        """Return the moment."""
        return self.now


@pytest.fixture
def moment():
    """Return the clock."""
    return Moment()


@pytest.fixture
async def world(database_url, tmp_path, moment):
    """Return a world whose log nothing follows by itself, at a moment that the test sets."""
    settings = settings_for(database_url, tmp_path)
    async with world_on(settings, tmp_path / "mail", follow=False, clock=moment) as one:
        yield one


async def refer(partner, count, address, first=0):
    """Start onboardings of one mailbox, each at another address of it."""
    for number in range(first, first + count):
        body = onboarding(f"u{number}", address.format(number))
        assert (await partner.call("POST", "/onboardings", json=body)).status_code == 201


async def sent(world):
    """Send what is due; return how many mails have left so far."""
    one = await note_mail(world)
    while await one.step():
        pass
    return len(list(world.mail_dir.glob("*.eml")))


def states(owner):
    """Return how many mails of the outbox are in each state."""
    rows = "select state, count(*) from live.mail_outbox group by state"
    return dict(owner.execute(rows).fetchall())


async def test_a_mailbox_gets_few_mails_a_day(world, moment, owner):
    """Of one partner three, of all six, under whatever tags; a day later there are more.

    After three of them a partner gets one through: two partners do not use up what others need.
    The partners' answers are as ever, others get their mail, and what was withheld stays recorded.
    """
    partners = [await world.partner() for _ in range(5)]
    for nr, partner in enumerate(partners):
        await refer(
            partner, PARTNER_MAX + 2, "Victim+{}@Example.com" if nr else "victim@example.com"
        )
    assert await sent(world) == ALL_MAX
    counted = "select count(*) from live.mail_recipients group by partner_id order by 1"
    assert owner.execute(counted).fetchall() == [(1,), (1,), (1,), (PARTNER_MAX,)]
    withheld = 5 * (PARTNER_MAX + 2) - ALL_MAX
    assert states(owner) == {"sent": ALL_MAX, "withheld": withheld}
    await refer(partners[2], 1, "other@example.com", first=50)
    assert await sent(world) == ALL_MAX + 1
    moment.now += PERIOD + timedelta(seconds=1)
    await refer(partners[2], PARTNER_MAX + 1, "victim+{}@example.com", first=60)
    assert await sent(world) == ALL_MAX + 1 + PARTNER_MAX
    assert states(owner)["withheld"] == withheld + 1


async def test_a_mailboxs_hash_is_kept_for_a_day(world, moment, owner, monkeypatch):
    """Though no other mail is sent. A clock that is ahead makes nothing old."""
    monkeypatch.setattr(outbox, "FORGET_SECONDS", 0.0)
    await refer(await world.partner(), 3, "victim@example.com")
    one, counted = await note_mail(world), "select message_id from live.mail_recipients"
    while await one.step():
        pass
    moment.now += 2 * PERIOD
    await one.step()
    left = owner.execute(counted).fetchall()
    assert len(left) == 3
    ago = "update live.mail_recipients set counted_at = now() - %s where message_id <> %s"
    owner.execute(ago, [PERIOD + timedelta(minutes=1), *left[0]])
    await one.step()
    assert owner.execute(counted).fetchall() == left[:1]


async def test_one_partner_keeps_no_other_from_an_address(world):
    """However much it sends."""
    loud, other = await world.partner(), await world.partner()
    await refer(loud, PARTNER_MAX + 5, "victim+{}@example.com")
    await refer(other, 1, "victim@example.com")
    assert await sent(world) == PARTNER_MAX + 1


async def test_a_mail_is_counted_once(world, moment, owner):
    """One that has to be tried again is not withheld for its own sake."""
    partner = await world.partner()
    await refer(partner, PARTNER_MAX, "victim@example.com")
    assert await sent(world) == PARTNER_MAX
    owner.execute(
        "update live.mail_outbox set state = 'waiting', next_attempt_at = %s", [moment.now]
    )
    moment.now += timedelta(minutes=1)
    assert await sent(world) == PARTNER_MAX
    assert states(owner) == {"sent": PARTNER_MAX}


async def test_senders_at_once_count_together(world, database_url, owner):
    """A mail waits while another one to the same mailbox is being sent; others do not."""
    partner = await world.partner()
    await refer(partner, 1, "victim@example.com")
    await refer(partner, 1, "other@example.com", first=10)
    outbox = await note_mail(world)
    secrets = await world.service.secrets.get()
    recipient = secrets.lookup_recipient("victim@example.com")
    async with await psycopg.AsyncConnection.connect(database_url) as sending:
        await sending.execute(
            "select pg_advisory_xact_lock(%s)",
            [lock_number(stream_id("mail-recipient", recipient))],
        )
        while await outbox.step():
            pass
        assert [mail["To"] for mail in mails(world)] == ["other@example.com"]
        waiting = "select attempts from live.mail_outbox where state = 'waiting'"
        assert owner.execute(waiting).fetchall() == [(0,)]
    owner.execute("update live.mail_outbox set next_attempt_at = now() - interval '1 hour'")
    await asyncio.gather(*(outbox.step() for _ in range(3)))
    assert len(mails(world)) == 2


async def test_a_mail_whose_link_has_expired_is_not_sent(world, moment, owner):
    """After a long outage it would only disappoint."""
    await refer(await world.partner(), 1, "late@example.com")
    moment.now += timedelta(days=8)
    assert await sent(world) == 0
    assert states(owner) == {"obsolete": 1}


def test_addresses_of_one_mailbox_have_one_hash():
    """Case, tags and dots are left out, which many providers ignore; nothing else is."""
    same = ["who@example.com", "Who@EXAMPLE.com", "who+1@example.com", "w.h.o+a+b@example.com"]
    other = ["who1@example.com", "who@other.example.com", "+1@example.com", "+2@example.com"]
    assert len({SECRETS.lookup_recipient(one) for one in same}) == 1
    assert len({SECRETS.lookup_recipient(one) for one in [*other, same[0]]}) == 5
    assert SECRETS.lookup_recipient(same[0]) != SECRETS.lookup_email(same[0])
