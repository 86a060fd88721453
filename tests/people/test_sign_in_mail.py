"""Sign-in mail: a link that cannot be decrypted delays no other mail."""

import base64
from email import message_from_bytes, policy

import pytest

from service.app.bootstrap import Service
from service.core.errors import Refusal
from service.mail.transport import mail_transport
from service.people.mail import SignInMail
from service.people.sign_in import PURPOSE
from tests.sessions import BROWSER
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
    transport = mail_transport(new.settings.smtp_url)
    mail = SignInMail(
        new.accounts.database,
        new.secrets,
        new.accounts.master_keys,
        transport,
        public_url=PUBLIC_URL,
        sender=new.settings.mail_from,
    )
    steps = [await mail.step() for _ in range(3)]
    async with new.accounts.database.writes.connection() as connection:
        (lost, *_), *_ = rows = await connection.fetch(STATES)
    sent = [message_from_bytes(one.read_bytes(), policy=policy.default) for one in mails(tmp_path)]
    assert (steps, [row["mail_state"] for row in rows]) == ([1, 1, 0], ["failed", "sent"])
    assert [one["To"] for one in sent] == ["second@example.com"]
    with pytest.raises(Refusal, match="sign_in_link_invalid"):
        await new.sign_in.look(secrets.link_token(PURPOSE, lost))


def mails(directory):
    """Return the files of sent mails."""
    return [one for one in (directory / "mail").rglob("*") if one.is_file()]
