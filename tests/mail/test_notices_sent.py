"""Which events are told by mail, to whom, and what keeps a mail from being sent."""

from collections import Counter
from datetime import timedelta

import pytest

from service.core.clock import system_clock
from service.facts.entities import EntityCorrected, entity_stream
from service.ledger.events import Cause
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.runner import Subscription
from service.ledger.writing import Append
from service.mail.outbox import Outbox
from service.mail.partner_notices import ADDRESSEES_MAX
from service.mail.queueing import AccountMailSubscriber
from service.mail.recipients import KEY_LIMITS, PARTNER_MAX
from tests.mail.mail_server import html, plain
from tests.mail.noted import mails, note_account_mail, note_mail, onboarding
from tests.sessions import session_of
from tests.world import PUBLIC_URL, STAFF, World

WORDS = {"company": "Books & Co", "contact_name": "Somebody", "use": "Use", "cause": STAFF}


async def sent(world: World, outbox: Outbox) -> Counter[tuple[str, str]]:
    """Send what is due; return the recipients and subjects of all mails."""
    while await outbox.step():
        pass
    return Counter((str(one["To"]), str(one["Subject"])) for one in mails(world))


async def test_a_partner_is_told_of_its_account_and_its_live_keys(world, owner):
    """One mail for each event, one for a roll, none for test keys; to the team as of the event."""
    partners = world.service.partners
    partner_id = await partners.apply(**WORDS, email="owner@example.com")
    await partners.approve(partner_id, STAFF)
    await partners.add_member(partner_id, "colleague@example.com", STAFF)
    await partners.issue_key(partner_id, "test", STAFF)
    key = await partners.issue_key(partner_id, "live", STAFF)
    outbox = await note_account_mail(world)
    assert await sent(world, outbox) == {
        ("owner@example.com", "Your partner account is approved"): 1,
        ("owner@example.com", "A colleague was added to your team"): 1,
        ("owner@example.com", "A live API key was issued"): 1,
        ("colleague@example.com", "A live API key was issued"): 1,
        ("colleague@example.com", "You have been added to the team of Books & Co"): 1,
    }
    rolled = await partners.roll_key(partner_id, key.key_id, timedelta(hours=1), STAFF)
    await partners.revoke_key(partner_id, rolled.key_id, STAFF)
    subjects = await sent(world, await note_account_mail(world))
    assert sum(subjects.values()) == 9
    assert subjects["owner@example.com", "A live API key was rolled"] == 1
    assert subjects["colleague@example.com", "A live API key was rolled"] == 1
    states = owner.execute("select state, count(*) from accounts.mail_outbox group by 1").fetchall()
    # A new key of a roll is told with the end of the old one.
    assert dict(states) == {"sent": 9, "shared": 4, "obsolete": 1}
    mail = next(one for one in mails(world) if "rolled" in str(one["Subject"]))
    for part in (plain(mail), html(mail)):
        assert key.key_id in part
        assert rolled.key_id in part
        assert f"{PUBLIC_URL}/console/{partner_id}/keys" in part


async def test_a_notice_reaches_few_of_a_large_team(world, owner):
    """The contact first; who left before is not told, and who leaves afterwards is."""
    partners = world.service.partners
    partner_id = await partners.apply(**WORDS, email="owner@example.com")
    await partners.approve(partner_id, STAFF)
    for number in range(ADDRESSEES_MAX + 1):
        await partners.add_member(partner_id, f"member{number:02}@example.com", STAFF)
    await removed(world, partner_id, "member03@example.com")
    await partners.issue_key(partner_id, "live", STAFF)
    issued = (await partners.look(partner_id)).version
    await removed(world, partner_id, "member05@example.com")
    outbox = await note_account_mail(world)
    owner.execute("delete from accounts.mail_outbox where version <> %s", (issued,))
    told = {to for to, _ in await sent(world, outbox)}
    assert told == {
        "owner@example.com",
        *(f"member{number:02}@example.com" for number in range(ADDRESSEES_MAX) if number != 3),
    }
    text = "select string_agg(m::text, '') from accounts.mail_outbox as m"
    assert "@" not in owner.execute(text).fetchone()[0]


async def removed(world, partner_id, email):
    """Remove the member with an address from a partner's team."""
    members = (await world.service.partners.look(partner_id)).members
    (member_id,) = (key for key, one in members.items() if one.email == email)
    await world.service.partners.remove_member(partner_id, member_id, STAFF)


async def test_whoever_removes_the_others_is_not_told_alone(world):
    """Of a live key the team is told that it was issued in, and everybody of who joins and leaves.

    So is whoever was removed, and the contact while it has no team.
    """
    partners = world.service.partners
    partner_id = await partners.add("Books & Co", "contact@example.com", STAFF)
    await partners.approve(partner_id, STAFF)
    for name in ("colleague", "intruder"):
        await partners.add_member(partner_id, f"{name}@example.com", STAFF)
    await partners.issue_key(partner_id, "live", STAFF)
    await removed(world, partner_id, "colleague@example.com")
    key, added, gone = (
        "A live API key was issued",
        "A colleague was added to your team",
        "A colleague was removed from your team",
    )
    subjects = await sent(world, await note_account_mail(world))
    assert subjects == {
        ("contact@example.com", "Your partner account is approved"): 1,
        ("contact@example.com", added): 1,
        ("colleague@example.com", added): 1,
        ("colleague@example.com", key): 1,
        ("colleague@example.com", "You are no longer on the team of Books & Co"): 1,
        ("intruder@example.com", "You have been added to the team of Books & Co"): 1,
        ("intruder@example.com", key): 1,
        ("intruder@example.com", gone): 1,
    }


async def test_a_person_is_told_of_their_passkeys(world):
    """Though their sessions have ended: of the team, of a partner's, or of a business."""
    service = world.service
    await service.staff.add("staff@example.com", STAFF)
    partner_id = await service.partners.add("Books & Co", "contact@example.com", STAFF)
    await service.partners.add_member(partner_id, "member@example.com", STAFF)
    await service.modes["live"].entities.add("Bakery", "baker@example.com", None, STAFF)
    people = ("staff", "member", "baker", "nobody")
    for name in people:
        session = await session_of(service, f"{name}@example.com")
        person_id = session.person.person_id
        await service.passkeys.add(person_id, name.encode(), b"key", STAFF)
        (passkey,) = await service.passkeys.of(person_id)
        await service.passkeys.remove(person_id, passkey.passkey_id, STAFF)
        await service.passkeys.recover(person_id, "per_helper", STAFF)
    subjects = ("A passkey was added", "A passkey was removed", "Your passkeys were removed")
    assert await sent(world, await note_account_mail(world)) == {
        (f"{name}@example.com", subject): 1 for name in people[:-1] for subject in subjects
    }
    assert all(f"{PUBLIC_URL}/security" in plain(one) for one in mails(world))


async def test_no_row_has_somebody_else_told_of_a_passkey(world, owner):
    """Whose an address is follows from the person's id and from events."""
    for name in ("person", "other"):
        await world.service.staff.add(f"{name}@example.com", STAFF)
    session, other = [
        await session_of(world.service, f"{name}@example.com") for name in ("person", "other")
    ]
    await world.service.passkeys.add(session.person.person_id, b"id", b"key", STAFF)
    theirs = bytes.fromhex(other.person.address_hash)
    owner.execute("update accounts.sessions set address_hash = %s", (theirs,))
    assert await sent(world, await note_account_mail(world)) == {}


async def test_a_partner_is_told_of_its_return_url(world):
    """Everybody of its team, when it was changed or removed; once, and of no other setting."""
    partners = world.service.partners
    partner_id = await partners.apply(**WORDS, email="owner@example.com")
    await partners.approve(partner_id, STAFF, "example.com")
    await partners.change_settings(partner_id, STAFF, return_link=True)
    for url in ("https://example.com/a", "https://example.com/b"):
        await partners.change_settings(partner_id, STAFF, return_url=url)
    subject = "The page that your customers return to was changed"
    subjects = await sent(world, await note_account_mail(world))
    assert subjects["owner@example.com", subject] == 1
    await partners.change_settings(partner_id, STAFF, suppress_email=True)
    await partners.change_settings(partner_id, STAFF, return_url="")
    subjects = await sent(world, await note_account_mail(world))
    assert subjects["owner@example.com", subject] == 2
    text = " ".join(plain(one) for one in mails(world))
    assert text.count("was removed.") == 1
    assert f"{PUBLIC_URL}/console/{partner_id}/settings" in text


async def test_a_paused_webhook_endpoint_is_told(world):
    """Unless a member paused it, or it was resumed or removed before the mail was sent.

    Of test mode's nobody is told, and of each of the others once a day, however often it pauses.
    """
    endpoints, partner_id = (
        world.service.endpoints,
        await world.service.partners.apply(**WORDS, email="owner@example.com"),
    )
    for name, mode, reason, then in (
        ("whe_a", "live", "failing", None),
        ("whe_b", "live", "gone", endpoints.enable),
        ("whe_c", "live", "gone", endpoints.remove),
        ("whe_d", "live", "member", None),
        ("whe_e", "test", "failing", None),
    ):
        await endpoints.add(partner_id, name, mode, "https://example.com/", [], STAFF)
        await endpoints.disable(partner_id, name, reason, STAFF)
        if then is not None:
            await then(partner_id, name, STAFF)
    await world.service.partners.approve(partner_id, STAFF)
    subjects = await sent(world, await note_account_mail(world))
    assert subjects["owner@example.com", "A webhook endpoint was paused"] == 1
    (mail,) = (one for one in mails(world) if "webhook" in str(one["Subject"]))
    assert "for three days" in plain(mail)
    assert f"{PUBLIC_URL}/console/{partner_id}/webhooks/whe_a" in plain(mail)
    for _ in range(2):
        for name in ("whe_a", "whe_b"):
            await endpoints.enable(partner_id, name, STAFF)
            await endpoints.disable(partner_id, name, "gone", STAFF)
    subjects = await sent(world, await note_account_mail(world))
    assert subjects["owner@example.com", "A webhook endpoint was paused"] == 2
    texts = [plain(one) for one in mails(world) if "webhook" in str(one["Subject"])]
    assert [sum(f"/{name}" in text for text in texts) for name in ("whe_a", "whe_b")] == [1, 1]


async def test_no_noise_silences_what_is_told_of_keys(world, owner):
    """They are counted by themselves: others' mails leave them alone, and they have a cap, too."""
    partners, endpoints = world.service.partners, world.service.endpoints
    partner_id = await partners.apply(**WORDS, email="owner@example.com")
    await partners.approve(partner_id, STAFF)
    for number in range(PARTNER_MAX + 1):
        name = f"whe_{number}"
        await endpoints.add(partner_id, name, "live", "https://example.com/", [], STAFF)
        await endpoints.disable(partner_id, name, "failing", STAFF)
    assert sum((await sent(world, await note_account_mail(world))).values()) == PARTNER_MAX
    for _ in range(KEY_LIMITS.partner + 1):
        key = await partners.issue_key(partner_id, "live", STAFF)
        await partners.revoke_key(partner_id, key.key_id, STAFF)
    subjects = await sent(world, await note_account_mail(world))
    keys = sum(count for (_, subject), count in subjects.items() if "API key" in subject)
    assert keys == KEY_LIMITS.partner
    withheld = "select count(*) from accounts.mail_outbox where state = 'withheld'"
    noise, told = 2, 2 * (KEY_LIMITS.partner + 1)
    assert owner.execute(withheld).fetchone() == (noise + told - KEY_LIMITS.partner,)


async def test_a_declined_application_is_told(world):
    """The reason stays in the console."""
    partner_id = await world.service.partners.apply(**WORDS, email="owner@example.com")
    await world.service.partners.decline(partner_id, STAFF, "a reason")
    subjects = await sent(world, await note_account_mail(world))
    assert subjects == {("owner@example.com", "Your application was declined"): 1}
    assert "a reason" not in plain(mails(world)[0])


async def test_what_is_long_past_is_not_told(world):
    """Such as everything that happened before notices were sent at all."""
    await world.partner()
    later = await note_account_mail(world, lambda: system_clock() + timedelta(days=2))
    assert await sent(world, later) == {}


async def test_only_live_and_accounts_have_subscribers_of_mail(world):
    """Test mode sends none."""
    named = {name: [one.name for one in ones] for name, ones in world.service.parking.items()}
    assert [name for name, names in named.items() if "mail" in names] == ["accounts", "live"]


async def test_customers_are_told_of_stages_if_they_want_it(world, owner):
    """By their choice as of the sending; of the last stage alone, and never of the debtor."""
    partner = await world.partner()
    live = world.service.modes["live"]
    entity_id = await live.entities.add("Bakery", "baker@example.com", None, STAFF)
    await partner.connect(entity_id)
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    await live.claims.move(claim_id, "negotiation", STAFF)
    assert await sent(world, await note_mail(world)) == {}
    await live.entities.choose_stage_mails(entity_id, STAFF, wanted=True)
    await live.entities.choose_stage_mails(entity_id, STAFF, wanted=True)  # changes nothing
    await live.claims.move(claim_id, "proceedings", STAFF)
    await live.claims.move(claim_id, "letter_before_action", STAFF)
    owner.execute("update live.entities set name = 'Pay at once'")  # its events say what it is
    owner.execute("update live.claim_list set partner_id = 'ptn_other'")
    subjects = await sent(world, await note_mail(world))
    assert subjects == {("baker@example.com", "A claim of Bakery has moved to a new stage"): 1}
    text = plain(mails(world)[0])
    assert "new stage: letter before action" in " ".join(text.split())
    assert f"/account/{entity_id}/{partner.partner_id}/claims/{claim_id}" in text
    assert "Debtor" not in text
    await live.claims.move(claim_id, "settled", STAFF)
    outbox = await note_mail(world)
    await live.entities.choose_stage_mails(entity_id, STAFF, wanted=False)
    assert sum((await sent(world, outbox)).values()) == 1
    chosen = owner.execute("select count(*) from live.events where topic = 'StageMailsChosen'")
    assert chosen.fetchone() == (2,)


async def test_a_mail_about_a_stage_has_the_name_that_its_person_confirmed(world):
    """As of the sending, from the business's events."""
    partner = await world.partner()
    live = world.service.modes["live"]
    entity_id = await live.entities.add("Bakry", "baker@example.com", None, STAFF)
    await live.entities.choose_stage_mails(entity_id, STAFF, wanted=True)
    await partner.connect(entity_id)
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    stream = entity_stream("live", entity_id)
    async with live.ledger.transaction() as transaction:
        (key,) = (await transaction.data_keys([stream])).values()
        past = await transaction.read(stream)
        events = [EntityCorrected(entity_id, "Bakery")]
        await transaction.append(Append(stream, len(past), events, STAFF, key))
    await live.claims.move(claim_id, "negotiation", STAFF)
    subjects = await sent(world, await note_mail(world))
    assert subjects == {("baker@example.com", "A claim of Bakery has moved to a new stage"): 1}


async def test_a_row_has_nobody_told_of_anothers_claim(world, owner):
    """Whose the claim is follows from its events, not from a row that somebody altered."""
    partner = await world.partner()
    live = world.service.modes["live"]
    other = await live.entities.add("Other", "other@example.com", None, STAFF)
    await live.entities.choose_stage_mails(other, STAFF, wanted=True)
    claim_id = (await partner.claim(await partner.connected_entity())).json()["claim_id"]
    owner.execute("update live.claim_list set entity_id = %s", (other,))
    await live.claims.move(claim_id, "negotiation", STAFF)
    assert await sent(world, await note_mail(world)) == {}


@pytest.mark.parametrize("date", ["4000-01-01 BC", "-infinity", "infinity", "20000-01-01"])
async def test_a_date_that_only_postgresql_has_holds_up_no_other_mail(world, owner, date):
    """It is that of a mail which somebody altered."""
    add = (
        "insert into accounts.mail_outbox"
        " (message_id, stream_id, version, noted_at, next_attempt_at)"
        " values ('altered', gen_random_uuid(), 1, %s, now() - interval '1 year')"
    )
    owner.execute(add, (date,))
    partner = await world.partner()
    await world.service.partners.issue_key(partner.partner_id, "live", STAFF)
    assert sum((await sent(world, await note_account_mail(world))).values()) > 0


async def test_nothing_is_sent_under_an_id_that_does_not_follow_from_its_event(world, owner):
    """Somebody who can write to the table would have a mail sent again under each new one."""
    partner = await world.partner()
    live, partners = world.service.modes["live"], world.service.partners
    await partners.add_member(partner.partner_id, "colleague@example.com", STAFF)
    await partners.issue_key(partner.partner_id, "live", STAFF)
    used, ended = [await partner.connected_entity() for _ in range(2)]
    await live.entities.choose_stage_mails(used, STAFF, wanted=True)
    claim_id = (await partner.claim(used)).json()["claim_id"]
    await live.claims.move(claim_id, "negotiation", STAFF)
    await live.connections.disconnect(ended, partner.partner_id, STAFF)
    await partner.call("POST", "/onboardings", json=onboarding())
    outboxes = [await note_mail(world), await note_account_mail(world)]
    subjects = [await sent(world, outbox) for outbox in outboxes][-1]
    assert len(subjects) == 8
    again = (
        "insert into {}.mail_outbox (message_id, stream_id, version, noted_at, next_attempt_at)"
        " select {}, stream_id, version, noted_at, now() - interval '1 hour' from {}.mail_outbox"
        " where state in ('sent', 'shared') and not message_id like '%%again%%'"
    )
    for ledger, outbox in zip(("live", "accounts"), outboxes, strict=True):
        for other in ("'again-' || message_id", "message_id || '.again'", "message_id || '-again'"):
            made = owner.execute(again.format(ledger, other, ledger)).rowcount
            assert made > 2
        assert await sent(world, outbox) == subjects
        states = f"select distinct state from {ledger}.mail_outbox where message_id ~ 'again'"  # noqa: S608 - ours
        assert owner.execute(states).fetchall() == [("obsolete",)]


async def test_a_partner_is_told_of_a_disconnection(world):
    """Of who did it, by the business's id only if it used that; not if connected again since."""
    partner = await world.partner()
    live = world.service.modes["live"].connections
    used, unused, again = [await partner.connected_entity() for _ in range(3)]
    await partner.claim(used)
    await live.disconnect(used, partner.partner_id, Cause(f"customer:{used}", STAFF.request_id))
    for entity_id in (unused, again):
        await live.disconnect(entity_id, partner.partner_id, STAFF)
    await live.connect_by_staff(again, partner.partner_id, STAFF)
    subjects = await sent(world, await note_mail(world))
    assert sorted(subject for _, subject in subjects) == [
        "A business has disconnected you",
        "You were disconnected from a business",
    ]
    texts = [plain(one) for one in mails(world)]
    assert len(texts) == 2
    assert [used in text for text in texts].count(True) == 1
    assert not any(unused in text for text in texts)


async def test_moves_of_many_claims_queue_few_mails(world, owner):
    """Of a business's claims with one partner: as many as its mailbox would take in a day."""
    partner = await world.partner()
    live = world.service.modes["live"]
    entity_id = await partner.connected_entity()
    await live.entities.choose_stage_mails(entity_id, STAFF, wanted=True)
    for number in range(5):
        claim_id = (await partner.claim(entity_id, f"case-{number}")).json()["claim_id"]
        await live.claims.move(claim_id, "negotiation", STAFF)
    await note_mail(world)
    assert owner.execute("select count(*) from live.mail_outbox").fetchone() == (3,)


async def test_a_notice_is_queued_once(world, owner):
    """However often its event is handled: its id is the event's own."""
    await world.partner()
    await note_account_mail(world)
    ids = "select message_id from accounts.mail_outbox order by 1"
    queued = owner.execute(ids).fetchall()
    owner.execute("update accounts.subscriptions set position = 0 where name = 'mail'")
    subscriber = ParkingSubscriber(AccountMailSubscriber(system_clock), system_clock)
    while await Subscription(world.service.accounts, subscriber).step():
        pass
    assert (len(queued), owner.execute(ids).fetchall()) == (2, queued)
