"""What is decoded to tell of an event: its stream is as long as people like."""

from collections import Counter

from tests.ledger.decoded import decoded
from tests.mail.noted import mails, note_account_mail, note_mail
from tests.sessions import session_of
from tests.world import STAFF

LONG = 8


async def grown(world):
    """Return a partner and a person, whose streams people have made long; and all was told."""
    service, partner = world.service, await world.partner()
    live, partner_id = service.modes["live"], partner.partner_id
    entity_id = await live.entities.add("Bakery", "baker@example.com", None, STAFF)
    person_id = (await session_of(service, "baker@example.com")).person.person_id
    await service.endpoints.add(partner_id, "whe_a", "live", "https://example.com/", [], STAFF)
    for number in range(LONG):
        await service.partners.change_settings(partner_id, STAFF, return_link=not number % 2)
        await service.partners.lend_key(partner_id, STAFF)
        await service.endpoints.disable(partner_id, "whe_a", "member", STAFF)
        await service.endpoints.enable(partner_id, "whe_a", STAFF)
        await live.entities.choose_stage_mails(entity_id, STAFF, wanted=not number % 2)
        await partner.connect(entity_id)
        await partner.disconnect(entity_id)
        await service.passkeys.add(person_id, b"%d" % number, b"key", STAFF)
        passkeys = await service.passkeys.of(person_id)
        await service.passkeys.remove(person_id, passkeys[-1].passkey_id, STAFF)
    for name in ("first", "second"):
        await service.partners.add_member(partner_id, f"{name}@example.com", STAFF)
    await partner.connect(entity_id)
    for outbox in (await note_account_mail(world), await note_mail(world)):
        while await outbox.step():
            pass
    return partner, entity_id, person_id


async def test_a_notice_decodes_no_long_stream(world, owner):
    """But its own event, and what follows the states that the process has, whoever is told."""
    partner, entity_id, person_id = await grown(world)
    service, partner_id = world.service, partner.partner_id
    key = await service.partners.issue_key(partner_id, "live", STAFF)
    await service.partners.revoke_key(partner_id, key.key_id, STAFF)
    await service.partners.change_settings(partner_id, STAFF, return_url="https://example.com/a")
    await service.endpoints.disable(partner_id, "whe_a", "gone", STAFF)
    await service.passkeys.add(person_id, b"last", b"key", STAFF)
    await partner.disconnect(entity_id)
    owner.execute("delete from accounts.mail_recipients")
    before = Counter(str(one["Subject"]) for one in mails(world))
    for outbox in (await note_account_mail(world), await note_mail(world)):
        steps = 1
        while steps:
            with decoded() as topics:
                steps = await outbox.step()
            assert len(topics) <= 4, topics
    told = Counter(str(one["Subject"]) for one in mails(world)) - before
    assert told == {
        "A live API key was issued": 2,
        "A live API key was revoked": 2,
        "The page that your customers return to was changed": 2,
        "A webhook endpoint was paused": 2,
        "You were disconnected from a business": 2,
        "A passkey was added": 1,
    }
