"""Sign-in mail: who waits for whom."""

import base64
from email import message_from_bytes, policy

import pytest

from service.app.bootstrap import Service
from service.core.errors import Refusal
from service.mail.transport import mail_transport
from service.people.mail import SignInMail
from service.people.sign_in import PURPOSE
from tests.sessions import BROWSER, session_of
from tests.world import PATIENCE_SECONDS, PUBLIC_URL, settings_for

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in range(2))
STATES = "select link_id, mail_state from accounts.sign_in_links order by asked_at"


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


def mail_of(service):
    """Return what sends a service's sign-in mail."""
    return SignInMail(
        service.accounts.database,
        service.secrets,
        service.accounts.master_keys,
        mail_transport(service.settings.smtp_url),
        public_url=PUBLIC_URL,
        sender=service.settings.mail_from,
    )


def recipients(directory):
    """Return to whom mails were sent."""
    files = [one for one in (directory / "mail").rglob("*") if one.is_file()]
    return [message_from_bytes(one.read_bytes(), policy=policy.default)["To"] for one in files]
