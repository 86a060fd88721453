"""No mail is sent twice after a database restore: sent mails are noted in the archive."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes, policy
from pathlib import Path

import psycopg
import pytest

from service.archive.directory import DirectoryArchive
from service.archive.port import OBJECT_BYTES_MAX, ArchiveUnavailable
from service.core.clock import system_clock, timestamp
from service.core.retries import ATTEMPTS_MAX, FOR_A_DAY, UNKNOWN_COUNTS
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.runner import Subscription
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.mail.outbox import Outbox
from service.mail.outcomes import ANSWERS_MAX, SEND_SECONDS_MAX
from service.mail.port import LateAnswer, MailUnanswered
from service.mail.queueing import MailSubscriber
from service.mail.sent import SECONDS_MAX as NOTE_SECONDS_MAX
from service.mail.sent import SentMail
from service.mail.smtp import DEADLINE_SECONDS, SmtpTransport
from tests.databases import cloned
from tests.mail.mail_server import MailServer
from tests.mail.noted import composer, mails, note_account_mail
from tests.patience import PATIENCE_SECONDS, eventually
from tests.world import STAFF, settings_for, world_on


class Refusing(DirectoryArchive):
    """A directory that can be made unreachable."""

    fails: frozenset[str] = frozenset()
    hangs: frozenset[str] = frozenset()

    async def put(self, name: str, content: bytes) -> bool:
        """Put, fail, or never return."""
        if "put" in self.hangs:
            await asyncio.Event().wait()
        if "put" in self.fails:
            raise ArchiveUnavailable("it is away")
        return await super().put(name, content)

    async def get(self, name: str, bytes_max: int = OBJECT_BYTES_MAX) -> bytes | None:
        """Get, fail, or never return."""
        if "get" in self.hangs:
            await asyncio.Event().wait()
        if "get" in self.fails:
            raise ArchiveUnavailable("it is away")
        return await super().get(name, bytes_max)


@pytest.fixture
async def mail_server():
    """Return a running mail server."""
    one = MailServer()
    one.port = await one.start()
    yield one
    await one.stop()


@pytest.fixture
async def world(database_url, tmp_path):
    """Return a world with an archive, whose log nothing follows by itself."""
    given = {"ARCHIVE_URL": (tmp_path / "published").as_uri()}
    settings = settings_for(database_url, tmp_path, **given)
    async with world_on(settings, tmp_path, follow=False) as one:
        yield one


@pytest.fixture
def place(tmp_path) -> Refusing:
    """Return the same archive, which a test can make unreachable."""
    return Refusing(tmp_path / "published")


@pytest.fixture
async def outbox(world, mail_server, place):
    """Return an outbox with one mail."""
    partner = await world.partner()
    body = {"partner_user_id": "u1", "company_name": "New", "user_email": "owner@example.com"}
    answer = await partner.call("POST", "/onboardings", json=body)
    assert answer.status_code == 201, answer.text
    service, live = world.service, world.service.modes["live"].ledger
    await Sequencer(live).step()
    while await Subscription(live, ParkingSubscriber(MailSubscriber(), system_clock)).step():
        pass
    transport = SmtpTransport(f"smtp://127.0.0.1:{mail_server.port}?starttls=offered")
    return Outbox(
        live,
        composer(service).of_live,
        transport,
        clock=service.clock,
        sent=SentMail([live], place, service.clock, seconds_max=PATIENCE_SECONDS),
    )


class Unanswering:
    """A transport whose server takes every mail, and says nothing, or cuts the connection."""

    def __init__(self, *, waits: bool) -> None:
        self.waits, self.taken, self.late = waits, 0, []

    async def send(self, message):
        """Take a mail."""
        self.taken += 1
        if not self.waits:
            raise MailUnanswered("cut")
        self.late.append(asyncio.get_running_loop().create_future())
        raise MailUnanswered("slow", LateAnswer(message["Message-ID"], self.late[-1]))


class Box:
    """The rows of the outbox's table."""

    def __init__(self, owner: psycopg.Connection) -> None:
        self.owner = owner

    def rows(self) -> list[tuple[str, int]]:
        """Return state and attempts of each mail."""
        return self.owner.execute("select state, attempts from live.mail_outbox").fetchall()

    def restore(self) -> None:
        """Return the mails to their unsent state, due now."""
        self.owner.execute("update live.mail_outbox set state = 'waiting', attempts = 0")
        self.due()

    def due(self) -> None:
        """Make waiting mails due now."""
        past = "now() - interval '1 hour'"
        self.owner.execute(f"update live.mail_outbox set next_attempt_at = {past}")  # noqa: S608 - ours


@pytest.fixture
def box(database_url) -> Iterator[Box]:
    """Return the table."""
    with psycopg.connect(database_url, autocommit=True) as owner:
        yield Box(owner)


def notes(directory: Path) -> list[Path]:
    """Return the notes of sent mails."""
    return list((directory / "published" / "mail").glob("*"))


async def test_a_sent_mail_is_noted(outbox, mail_server, box, tmp_path):
    """The note has the time and the Message-ID, not the recipient."""
    assert await outbox.step() == 1
    (received,) = mail_server.received
    mail = message_from_bytes(received, policy=policy.default)
    (path,) = notes(tmp_path)
    note = json.loads(path.read_text())
    assert path.name.startswith("onb_")
    assert set(note) == {"at", "message_id"}
    assert note["message_id"] == mail["Message-ID"]
    assert "owner" not in path.read_text()
    assert box.rows() == [("sent", 1)]


async def test_a_restored_mail_is_not_sent_again(outbox, mail_server, box):
    """It is settled as sent instead."""
    await outbox.step()
    box.restore()
    assert await outbox.step() == 1
    assert len(mail_server.received) == 1
    assert box.rows()[0][0] == "sent"
    assert await outbox.step() == 0


async def test_noted_mails_are_settled_all_at_once(outbox, world, mail_server, box):
    """As the command for a new lineage does; mails that were never sent keep waiting."""
    assert await world.service.sent_mail.settle() == 0
    assert box.rows() == [("waiting", 0)]
    await outbox.step()
    box.restore()
    assert await world.service.sent_mail.settle() == 1
    assert box.rows() == [("sent", 0)]
    assert await outbox.step() == 0
    assert len(mail_server.received) == 1


async def test_mail_waits_for_an_unreachable_archive(outbox, mail_server, box, place):
    """Late rather than twice: the mail waits as long as necessary and is not given up."""
    place.fails = frozenset({"get"})
    for _ in range(ATTEMPTS_MAX + 2):
        assert await outbox.step() == 1
        assert await outbox.step() == 0, "not due for a while"
        box.due()
    assert box.rows() == [("waiting", 0)]
    assert mail_server.received == []
    place.fails = frozenset()
    await outbox.step()
    assert (box.rows(), len(mail_server.received)) == ([("sent", 1)], 1)


async def test_a_mail_without_a_note_is_sent_once(outbox, mail_server, box, place, tmp_path):
    """Even if the note cannot be written."""
    place.fails = frozenset({"put"})
    await outbox.step()
    assert box.rows() == [("sent", 1)]
    assert await outbox.step() == 0
    assert len(mail_server.received) == 1
    assert notes(tmp_path) == []


async def test_a_mail_that_was_refused_is_not_noted(outbox, mail_server, box, tmp_path):
    """Nor is one that waits: only sent mails are."""
    mail_server.on_data = "451 later"
    await outbox.step()
    assert (box.rows(), notes(tmp_path)) == ([("waiting", 1)], [])
    box.due()
    mail_server.on_data = None
    await outbox.step()
    assert (box.rows(), len(notes(tmp_path))) == ([("sent", 2)], 1)


async def test_a_hanging_archive_sends_no_mail_twice(outbox, mail_server, box, place):
    """When reading hangs the mail waits; when writing hangs it is sent once."""
    outbox = replace(outbox, sent=replace(outbox.sent, seconds_max=0.3))
    place.hangs = frozenset({"get"})
    await outbox.step()
    assert (box.rows(), mail_server.received) == ([("waiting", 0)], [])
    box.due()
    place.hangs = frozenset({"put"})
    for _ in range(3):
        await outbox.step()
        box.due()
    assert (box.rows(), len(mail_server.received)) == ([("sent", 1)], 1)


async def test_a_slow_archive_leaves_time_to_settle():
    """Look-up, delivery, QUIT and note all fit into the mail's transaction."""
    assert 2 * NOTE_SECONDS_MAX + DEADLINE_SECONDS + 1 < SEND_SECONDS_MAX - 2


async def test_an_always_interrupted_sender_gives_up(outbox, mail_server, box, monkeypatch):
    """Wherever it is cut off: each attempt is counted and waits, and attempts are limited."""
    places = {(SentMail, "has"): 0, (SmtpTransport, "send"): 0, (SentMail, "note"): ATTEMPTS_MAX}
    for (owner, method), expected in places.items():
        box.restore()
        with monkeypatch.context() as patch:
            patch.setattr(owner, method, _cut)
            for attempt in range(1, ATTEMPTS_MAX + 1):
                with suppress(asyncio.CancelledError):
                    await outbox.step()
                assert box.rows() == [("waiting", attempt)], method
                assert await outbox.step() == 0, f"{method}: not due for a while"
                box.due()
        sent = len(mail_server.received)
        await outbox.step()
        assert box.rows() == [("failed", ATTEMPTS_MAX + 1)], method
        assert (sent, len(mail_server.received)) == (expected, sent), method


async def until_taken(outbox, mail_server, box) -> None:
    """Attempt the mail until the server has it, and does not answer."""
    mail_server.answers.clear()
    while not mail_server.received:
        box.restore()
        await outbox.step()


@pytest.fixture
def hasty(outbox, mail_server) -> Outbox:
    """Return the outbox with a transport that waits for a second for what is not there yet."""
    url = f"smtp://127.0.0.1:{mail_server.port}?starttls=offered"
    return replace(outbox, transport=SmtpTransport(url, deadline_seconds=1.0))


async def test_a_server_that_is_slow_to_answer_gets_a_mail_once(hasty, mail_server, box, tmp_path):
    """The mail is settled, and noted, when the answer comes; nothing waits for it by then."""
    await until_taken(hasty, mail_server, box)
    assert box.rows() == [("waiting", UNKNOWN_COUNTS)]
    assert await hasty.step() == 0, "not due for a while"
    mail_server.answers.set()
    await eventually(lambda: box.rows() == [("sent", 1)])
    assert (len(mail_server.received), len(notes(tmp_path))) == (1, 1)


@pytest.mark.parametrize(("answer", "state"), [("550 unknown", "failed"), ("451 later", "waiting")])
async def test_what_a_server_says_late_is_what_it_said(hasty, mail_server, box, answer, state):
    """Nothing is unknown then: it was an attempt like others."""
    asked = asyncio.Event()
    handle = mail_server.handle_DATA

    async def noted(*args):
        asked.set()
        return await handle(*args)

    mail_server.handle_DATA, mail_server.on_data = noted, answer
    mail_server.answers.clear()
    while not asked.is_set():
        box.restore()
        await hasty.step()
    mail_server.answers.set()
    await eventually(lambda: box.rows() == [(state, 1)])


@pytest.mark.parametrize("change", ["state = 'obsolete'", "attempts = 3"])
async def test_a_late_answer_settles_nothing_that_was_settled_meanwhile(
    hasty, mail_server, box, change
):
    """Such as by an erasure, or an attempt that came after."""
    await until_taken(hasty, mail_server, box)
    box.owner.execute(f"update live.mail_outbox set {change}")  # noqa: S608 - ours
    before = box.rows()
    mail_server.answers.set()
    await eventually(lambda: not hasty.answers.count)
    assert box.rows() == before


async def test_a_mail_that_is_never_answered_is_sent_three_times(outbox, mail_server, box):
    """Whether its connection is cut or hangs: it may have been delivered each time."""
    for waits in (False, True):
        box.restore()
        mail_server.received.clear()
        transport = Unanswering(waits=waits)
        one = replace(outbox, transport=transport)
        while box.rows()[0][0] == "waiting":
            await one.step()
            box.due()
        assert (box.rows()[0][0], transport.taken) == ("failed", 3), waits
        await one.answers.stop()


async def test_the_answers_that_are_waited_for_are_few(outbox, box):
    """For one more, the oldest is given up; a process that stops gives all of them up."""
    transport = Unanswering(waits=True)
    one = replace(outbox, transport=transport)
    for _ in range(ANSWERS_MAX + 2):
        box.restore()
        await one.step()
    await eventually(lambda: one.answers.count == ANSWERS_MAX)
    assert [late.cancelled() for late in transport.late] == [True] * 2 + [False] * ANSWERS_MAX
    await one.answers.stop()
    assert one.answers.count == 0
    assert all(late.cancelled() for late in transport.late)
    assert box.rows() == [("waiting", UNKNOWN_COUNTS)]


async def test_a_wait_begins_when_an_attempt_has_ended(outbox, box):
    """Not before it: a server that takes its time would be asked again at once."""
    now = system_clock()
    later = iter([now, *[now + timedelta(seconds=40)] * 9])
    one = replace(outbox, transport=Unanswering(waits=False), clock=lambda: next(later))
    await one.step()
    due = box.owner.execute("select next_attempt_at from live.mail_outbox").fetchone()[0]
    assert due == now + timedelta(seconds=40) + FOR_A_DAY.after_unknown(1)[1]


async def test_an_id_that_no_archive_has_keeps_nothing_waiting(outbox, box, mail_server):
    """Somebody wrote it: the mail is obsolete, and settling what was sent goes on."""
    for name in ("../1", "a/b", ".hidden", "x" * 5_000):
        box.owner.execute(
            "insert into live.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)"
            " select %s, stream_id, noted_at, now() - interval '1 day' from live.mail_outbox"
            " where message_id ~ '^onb_'",
            [name],
        )
    assert await replace(outbox.sent, ledgers=[outbox.ledger]).settle() == 0
    while await outbox.step():
        pass
    assert sorted(box.rows()) == [*[("obsolete", 1)] * 4, ("sent", 1)]
    assert len(mail_server.received) == 1


async def test_an_archive_that_fails_in_its_own_way_has_a_mail_given_up(outbox, box, monkeypatch):
    """Whatever is wrong, attempts are limited."""

    async def fail(*_args):
        raise RuntimeError("a fault of a library")

    monkeypatch.setattr(Refusing, "get", fail)
    for _ in range(ATTEMPTS_MAX + 1):
        await outbox.step()
        box.due()
    assert box.rows() == [("failed", ATTEMPTS_MAX)]


async def test_a_number_of_attempts_that_somebody_wrote_stops_no_mail(outbox, box, mail_server):
    """The column has no room for one more, or each of them would be an attempt more."""
    for attempts, expected in (
        (2**31 - 1, ("failed", ATTEMPTS_MAX + 1)),
        (-(2**31), ("sent", 1)),
    ):
        box.restore()
        box.owner.execute("update live.mail_outbox set attempts = %s", [attempts])
        assert await outbox.step() == 1
        assert box.rows() == [expected]
    assert len(mail_server.received) == 1


async def test_a_sender_that_is_cut_off_after_the_note(outbox, mail_server, box, monkeypatch):
    """The note stands in for what was not committed: nothing is sent again."""
    note = SentMail.note

    async def noted_and_cut(*args):
        await note(*args)
        await _cut()

    monkeypatch.setattr(SentMail, "note", noted_and_cut)
    with suppress(asyncio.CancelledError):
        await outbox.step()
    assert box.rows() == [("waiting", 1)]
    await asyncio.to_thread(box.due)  # it waits for the roll-back, which this loop has to send
    await outbox.step()
    assert (box.rows(), len(mail_server.received)) == ([("sent", 2)], 1)


async def test_a_notice_of_a_lost_event_stands_in_for_no_other(
    database_url, postgres_url, tmp_path
):
    """A restored log has another event in its place; what both logs have is told once."""
    (tmp_path / "published").mkdir()
    archive = DirectoryArchive(tmp_path / "published")

    async def tell_of_a_key(url: str, settled: int) -> list[str]:
        async with world_on(settings_for(url, tmp_path), tmp_path, follow=False) as world:
            await world.service.partners.issue_key(partner_id, "live", STAFF)
            outbox = await note_account_mail(world, archive=archive)
            assert await outbox.sent.settle() == settled
            await _send(outbox)
            return [mail["Message-ID"] for mail in mails(world)]

    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partner_id = (await world.partner()).partner_id
    with cloned(postgres_url, database_url.rpartition("/")[2]) as restored:
        lost = await tell_of_a_key(database_url, 0)
        told = await tell_of_a_key(restored, len(lost) - 1)
    assert len(set(told)) == len(told) == len(lost) + 1


@pytest.mark.parametrize(("seconds", "sent"), [(-60, 0), (60, 1)])
async def test_a_note_of_an_earlier_release_counts_if_its_event_came_first(
    world, place, seconds, sent
):
    """It has the place of its event alone: what was sent before was about another one."""
    partner = await world.partner()
    await _send(await note_account_mail(world))
    await world.service.partners.issue_key(partner.partner_id, "live", STAFF)
    outbox = await note_account_mail(world, archive=place)
    (row,) = await outbox.ledger.database.reads.fetch(queries("service.mail").outbox_waiting)
    at = timestamp(row["noted_at"] + timedelta(seconds=seconds))
    await place.put(f"mail/{row['message_id']}", json.dumps({"at": at}).encode())
    assert await outbox.sent.settle() == sent


async def _send(outbox):
    while await outbox.step():
        pass


async def _cut(*_args):
    raise asyncio.CancelledError
