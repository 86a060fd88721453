import asyncio
from dataclasses import replace
from email import message_from_bytes, policy

import psycopg
import pytest

from service.core.errors import Refusal
from service.ledger.database import LedgerUnavailable
from tests.mail.mail_server import plain
from tests.mail.noted import note_mail, onboarding
from tests.patience import eventually
from tests.world import STAFF


@pytest.mark.followed
async def test_the_magic_link_is_mailed_once(world):
    """An onboarding mails its link to the person; a replay sends no mail."""
    partner = await world.partner()
    await partner.call("POST", "/onboardings", json=onboarding())
    await eventually(lambda: world.mail_dir.exists() and list(world.mail_dir.glob("onb_*.eml")))
    await partner.call("POST", "/onboardings", json=onboarding())
    await asyncio.sleep(0.3)
    (path,) = world.mail_dir.glob("onb_*.eml")
    mail = message_from_bytes(path.read_bytes(), policy=policy.default)
    assert mail["To"] == "owner@example.com"
    assert "https://api.example.com/onboarding/" in plain(mail)


async def test_a_revoked_partners_links_stop_working(world):
    """Waiting mail is not sent, and a link already sent connects nobody."""
    partner = await world.partner()
    await world.service.partners.change_settings(partner.partner_id, STAFF, return_link=True)
    answer = await partner.call("POST", "/onboardings", json=onboarding())
    await world.service.partners.revoke(partner.partner_id, STAFF)
    outbox = await note_mail(world)
    assert await outbox.step() == 1
    assert list(world.mail_dir.glob("*.eml")) == []
    token = answer.json()["magic_link_url"].rpartition("/")[2]
    with pytest.raises(Refusal) as refused:
        await world.service.modes["live"].onboardings.complete(token, "req_1")
    assert refused.value.code == "magic_link_invalid"


async def test_a_mail_whose_key_is_missing_is_given_up(world, owner):
    """Nobody erased the person: the lost address is an error, and not a mail of no use."""
    partner = await world.partner()
    await partner.call("POST", "/onboardings", json=onboarding())
    outbox = await note_mail(world)
    owner.execute("delete from live.data_keys")
    assert await outbox.step() == 1
    assert owner.execute("select state from live.mail_outbox").fetchall() == [("failed",)]
    assert list(world.mail_dir.glob("*.eml")) == []


async def test_one_unreadable_mail_holds_up_no_other(world, database_url):
    """A mail whose master key is missing waits for it; the next one is sent."""
    partner = await world.partner()
    first = await partner.call("POST", "/onboardings", json=onboarding("u1", "one@example.com"))
    await partner.call("POST", "/onboardings", json=onboarding("u2", "two@example.com"))
    outbox = await note_mail(world)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            "update live.data_keys set master_key_id = 'gone' where key_id = (select e.stream_id"
            " from live.entities e join live.onboardings o using (entity_id)"
            " where o.onboarding_id = %s)",
            [first.json()["onboarding_id"]],
        )
    while await outbox.step():
        pass
    (path,) = world.mail_dir.glob("*.eml")
    assert b"two@example.com" in path.read_bytes()


class Cutting:
    """Looks for a mail's note, and ends the transaction's session meanwhile."""

    def __init__(self, database_url):
        self.database_url = database_url

    async def has(self, _name):
        """Return that there is none."""
        with psycopg.connect(self.database_url, autocommit=True) as owner:
            ended = owner.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'claim-ledger live background'"
                " and datname = current_database() and state = 'idle in transaction'"
            ).fetchall()
        assert ended == [(True,)]
        return False


async def test_a_mail_is_not_to_blame_for_a_lost_connection(world, database_url, capsys):
    """PostgreSQL is away, which the step says; nothing calls the mail faulty."""
    partner = await world.partner()
    await partner.call("POST", "/onboardings", json=onboarding())
    outbox = replace(await note_mail(world), sent=Cutting(database_url))
    capsys.readouterr()
    with pytest.raises(LedgerUnavailable):
        await outbox.step()
    assert "mail faulty" not in capsys.readouterr().out


async def test_blank_company_numbers_identify_nobody(world):
    """Two businesses with blank numbers stay separate."""
    partner = await world.partner()
    await world.service.partners.change_settings(partner.partner_id, STAFF, return_link=True)
    one = onboarding("u1", "one@example.com") | {"company_number": " "}
    other = onboarding("u2", "two@example.com") | {"company_number": "   "}
    token = (await partner.call("POST", "/onboardings", json=one)).json()["magic_link_url"]
    visitor = (await world.service.secrets.get()).lookup_email("one@example.com")
    live = world.service.modes["live"].onboardings
    await live.complete(token.rpartition("/")[2], "req_1", visitor=visitor)
    assert (await partner.call("POST", "/onboardings", json=other)).status_code == 201
