"""Sign-in mail: who waits for whom."""

import asyncio
import base64
from datetime import timedelta
from email import message_from_bytes, policy

import pytest

from service.app.bootstrap import Service
from service.core.errors import Refusal
from service.core.retries import UNKNOWN_COUNTS
from service.facts.passkeys import passkeys_stream
from service.facts.people import person_id
from service.ledger.effects import effect_lock
from service.mail.port import LateAnswer, MailUnanswered
from service.mail.transport import mail_transport
from service.people.mail import RETRIES, SignInMail
from service.people.sign_in import LINK_LIFETIME, PURPOSE
from tests.patience import eventually
from tests.sessions import BROWSER, session_of
from tests.world import PATIENCE_SECONDS, PUBLIC_URL, settings_for

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in range(2))
STATES = "select link_id, mail_state from accounts.sign_in_links order by asked_at"
ATTEMPTS = "select mail_state, mail_attempts from accounts.sign_in_links"
DUE = "update accounts.sign_in_links set mail_next_at = now() - interval '1 second'"
WAITING = (
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)


@pytest.fixture
async def services(database_url, tmp_path):
    """Return a service with the old ring, and one with the new ring alone."""
    old, both, new = (
        Service(
            settings_for(database_url, tmp_path / "mail", MASTER_KEYS=ring),
            deadline_seconds=PATIENCE_SECONDS,
        )
        for ring in (OLD, f"{NEW},{OLD}", NEW)
    )
    async with old.opened(), new.opened():
        async with both.opened():  # the secrets are drawn under the new key
            await both.secrets.get()
        yield old, new


async def test_a_link_that_cannot_be_opened_is_settled(services, tmp_path):
    """With its master key gone the oldest mail fails, and the next one is sent."""
    old, new = services
    (tmp_path / "mail").mkdir()
    secrets = await new.secrets.get()
    old.secrets.get = new.secrets.get  # of another ring: what it wraps, the new ring cannot open
    await old.sign_in.ask("first@example.com", "/", BROWSER)
    await new.sign_in.ask("second@example.com", "/", BROWSER)
    mail = mail_of(new)
    steps = [await mail.step() for _ in range(3)]
    async with new.accounts.database.writes.connection() as connection:
        (lost, *_), *_ = rows = await connection.fetch(STATES)
    assert (steps, [row["mail_state"] for row in rows]) == ([1, 1, 0], ["failed", "sent"])
    assert recipients(tmp_path) == ["second@example.com"]
    with pytest.raises(Refusal, match="sign_in_link_invalid"):
        await new.sign_in.look(secrets.link_token(PURPOSE, lost))


async def test_whoever_signed_in_before_is_not_behind_strangers(services, tmp_path):
    """However many addresses somebody asks for links of, from however many networks."""
    _, service = services
    (tmp_path / "mail").mkdir()
    sign_in, mail = service.sign_in, mail_of(service)
    text = await service.marks.of(await session_of(service, "known@example.com"))
    known = await service.marks.read(text, "known@example.com")
    for number in range(3):
        await sign_in.ask(f"p{number}@example.com", "/", BROWSER)
    await sign_in.ask("known@example.com", "/", BROWSER, known)
    assert await mail.step() == 1
    assert recipients(tmp_path) == ["known@example.com"]
    assert [await mail.step() for _ in range(4)] == [1, 1, 1, 0]


class Slow:
    """A mail server that takes a mail, and says so when it may."""

    def __init__(self) -> None:
        self.asked, self.taken, self.answer = asyncio.Event(), 0, asyncio.Event()

    async def send(self, _message):
        """Take a mail."""
        self.taken += 1
        self.asked.set()
        await self.answer.wait()


class Late(Slow):
    """One that answers later than anybody waits for it, if ever."""

    async def send(self, message):
        """Take a mail."""
        late = LateAnswer(message["Message-ID"], asyncio.create_task(super().send(message)))
        raise MailUnanswered("slow", late)


async def asked_of(service):
    """Ask for a link; return its token."""
    await service.sign_in.ask("person@example.com", "/", BROWSER)
    async with service.accounts.database.writes.connection() as connection:
        ((link_id, _),) = await connection.fetch(STATES)
    return (await service.secrets.get()).link_token(PURPOSE, link_id)


async def test_a_link_is_used_while_its_mail_is_handed_over(services, owner):
    """Once the server has the mail, it may arrive before the server has said so."""
    _, service = services
    for server in (Slow(), Late()):
        owner.execute("delete from accounts.sign_in_links")
        token = await asked_of(service)
        mail = mail_of(service, server)
        sending = asyncio.create_task(mail.step())
        await (server.asked.wait() if type(server) is Slow else asyncio.wait([sending]))
        await service.sign_in.redeem(token, None, BROWSER)
        server.answer.set()
        assert await sending == 1
        await eventually(lambda one=mail: not one.answers.count)
        assert owner.execute(ATTEMPTS).fetchall() == [
            ("sent", 1 if type(server) is Slow else UNKNOWN_COUNTS)
        ]
        assert await mail.step() == 0


async def test_a_mail_whose_sender_is_cut_off_was_counted(services, owner):
    """Its attempts are limited, and it is not due again at once."""
    _, service = services
    await asked_of(service)
    server = Slow()
    for attempt in range(1, 3):
        mail = mail_of(service, server)
        sending = asyncio.create_task(mail.step())
        await server.asked.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert owner.execute(ATTEMPTS).fetchall() == [("waiting", attempt)]
        assert await mail.step() == 0
        owner.execute(DUE)
        server.asked.clear()
    assert server.taken == 2


async def test_a_server_that_is_slow_to_answer_gets_a_sign_in_mail_once(services, owner):
    """The mail is settled when the answer comes, and is not due again before that."""
    _, service = services
    await asked_of(service)
    server = Late()
    mail = mail_of(service, server)
    assert await mail.step() == 1
    assert owner.execute(ATTEMPTS).fetchall() == [("waiting", UNKNOWN_COUNTS)]
    assert await mail.step() == 0
    server.answer.set()
    await eventually(lambda: owner.execute(ATTEMPTS).fetchall() == [("sent", 1)])
    assert server.taken == 1


def test_a_sign_in_mail_that_is_never_answered_is_sent_twice():
    """While its link lives, even where each connection is cut at once; others are tried on."""
    first, wait = RETRIES.after_unknown(1)
    assert wait < LINK_LIFETIME < wait + RETRIES.after_unknown(first + 1)[1]
    tries, at = 0, timedelta()
    while at < LINK_LIFETIME:
        tries += 1
        at += RETRIES.wait_after(tries)
    assert tries < RETRIES.attempts_max


async def test_an_erasure_waits_for_a_sign_in_mail_that_is_on_its_way(services, owner):
    """Of the address; what is sent later finds no link."""
    _, service = services
    await asked_of(service)
    server, address = Slow(), (await service.secrets.get()).lookup_email("person@example.com")
    mail = mail_of(service, server)
    sending = asyncio.create_task(mail.step())
    await server.asked.wait()
    erased = asyncio.create_task(service.sessions.forget(bytes.fromhex(address)))
    await eventually(lambda: erased.done() or owner.execute(WAITING).fetchall())
    assert not erased.done()
    server.answer.set()
    await asyncio.gather(sending, erased)
    assert owner.execute(ATTEMPTS).fetchall() == []


async def test_no_sign_in_mail_is_sent_while_an_erasure_is_at_its_address(services, owner):
    """It is due again after its lease, if its link is there by then."""
    _, service = services
    await asked_of(service)
    address = (await service.secrets.get()).lookup_email("person@example.com")
    lock = effect_lock(passkeys_stream(person_id(address)))
    owner.execute("select pg_advisory_lock(%s)", [lock])
    server = Slow()
    assert await mail_of(service, server).step() == 1
    assert (server.taken, owner.execute(ATTEMPTS).fetchall()) == (0, [("waiting", 1)])


@pytest.mark.parametrize("attempts", [-(2**31), 24, 2**31 - 1])
async def test_attempts_that_somebody_wrote_stop_no_sign_in_mail(services, owner, attempts):
    """The column has no room for one more, or each of them would be an attempt more."""
    _, service = services
    await asked_of(service)
    owner.execute("update accounts.sign_in_links set mail_attempts = %s", [attempts])
    server = Slow()
    server.answer.set()
    assert await mail_of(service, server).step() == 1
    expected = ("sent", 1) if attempts < 0 else ("failed", RETRIES.attempts_max + 1)
    assert owner.execute(ATTEMPTS).fetchall() == [expected]


def mail_of(service, transport=None):
    """Return what sends a service's sign-in mail."""
    return SignInMail(
        service.accounts.database,
        service.secrets,
        service.accounts.master_keys,
        transport or mail_transport(service.settings.smtp_url),
        public_url=PUBLIC_URL,
        sender=service.settings.mail_from,
    )


def recipients(directory):
    """Return to whom mails were sent."""
    files = [one for one in (directory / "mail").rglob("*") if one.is_file()]
    return [message_from_bytes(one.read_bytes(), policy=policy.default)["To"] for one in files]
