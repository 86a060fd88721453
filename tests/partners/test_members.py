"""Applications and teams: who is a member of which partner."""

import asyncio

import pytest

from service.core.errors import Refusal
from service.facts.partners import partner_stream
from service.ledger.events import Cause
from tests.memory_ledger import memory_world
from tests.world import STAFF

MEMBER = Cause("member:per_1", "req_1")


@pytest.fixture
async def service(tmp_path):
    """Return a service in memory, where neither a race nor what is stored is the point."""
    return memory_world(tmp_path).service


def applying(service, email="dev@example.com"):
    """Apply as a person."""
    return service.partners.apply(
        company="Ledger Books",
        contact_name="Zoë Letterhead",
        use="Referrals.",
        email=email,
        cause=MEMBER,
    )


async def hash_of(service, email):
    """Return the keyed look-up of an address."""
    return (await service.secrets.get()).lookup_email(email)


async def events_of(service, partner_id):
    """Return a partner's stream."""
    async with service.accounts.transaction() as transaction:
        return await transaction.read(partner_stream(partner_id))


async def test_who_applies_is_the_first_member(service):
    """The application names them as its cause, and their address, folded, finds the partner."""
    partner_id = await applying(service, "Dev@example.com")
    events = await events_of(service, partner_id)
    mine = await service.partner_list.partners_of(await hash_of(service, "dev@EXAMPLE.com"))
    partner = await service.partners.look(partner_id)

    assert [type(one.event).__name__ for one in events] == ["PartnerApplied", "MemberAdded"]
    assert {"member:per_1"} == {one.meta.actor for one in events}
    assert [(partner_id, "pending")] == [(one["partner_id"], one["status"]) for one in mine]
    assert (partner.contact_name, partner.use) == ("Zoë Letterhead", "Referrals.")
    assert [one.email for one in partner.members.values()] == ["Dev@example.com"]


async def test_what_people_write_is_sealed(world):
    """Neither the stored events nor the table of members hold an address, a name or a reason."""
    partner_id = await applying(world.service, "canary-address@example.com")
    await world.service.partners.add_member(partner_id, "canary-2@example.com", STAFF)
    await world.service.partners.decline(partner_id, STAFF, "canary-reason")
    async with world.service.accounts.transaction() as transaction:
        states = await transaction.connection.fetch("select state from accounts.events")
        members = await transaction.connection.fetch("select m::text from accounts.members as m")
    stored = b"".join(row["state"] for row in states) + str(members).encode()

    assert len(members) == 2
    for word in (b"canary", b"Letterhead", b"Referrals", b"Ledger Books"):
        assert word not in stored
    assert (await world.service.partners.look(partner_id)).reason == "canary-reason"


async def test_one_application_at_a_time(world):
    """Of several sent at once one is taken; another can follow when it is decided."""
    outcomes = await asyncio.gather(
        *(applying(world.service) for _ in range(5)), return_exceptions=True
    )
    taken = [one for one in outcomes if isinstance(one, str)]
    refused = [one.code for one in outcomes if isinstance(one, Refusal)]
    other = await applying(world.service, "other@example.com")
    await world.service.partners.approve(taken[0], STAFF)
    second = await applying(world.service)

    assert (len(taken), refused) == (1, ["application_pending"] * 4)
    assert len({taken[0], other, second}) == 3


async def test_a_member_is_who_has_the_address_now(service):
    """Added, they belong to the partner; removed, they do not; added again, they do."""
    partner_id = await applying(service)
    commands, readers = service.partners, service.partner_list
    await commands.approve(partner_id, STAFF)
    hashed = await hash_of(service, "two@example.com")
    seen = []
    for _ in range(2):
        await commands.add_member(partner_id, "two@example.com", MEMBER)
        await commands.add_member(partner_id, "TWO@example.com", MEMBER)
        row = await readers.member(partner_id, hashed)
        seen.append(row["partner_id"])
        await commands.remove_member(partner_id, row["member_id"], MEMBER)
        assert await readers.member(partner_id, hashed) is None
    names = [type(one.event).__name__ for one in await events_of(service, partner_id)]

    assert seen == [partner_id] * 2
    assert names[3:] == ["MemberAdded", "MemberRemoved"] * 2
    assert len(await readers.members(partner_id)) == 1


async def test_nobody_is_a_member_elsewhere(service):
    """A member of one partner is none of another's, nor of a partner that is not there."""
    partner_id = await applying(service)
    other = await applying(service, "other@example.com")
    mine = await hash_of(service, "dev@example.com")
    readers = service.partner_list

    assert await readers.member(partner_id, mine) is not None
    assert await readers.member(other, mine) is None
    assert await readers.member("ptn_none", mine) is None


async def test_the_last_member_stays(world):
    """Of two who remove each other at once, one is left."""
    partner_id = await applying(world.service)
    commands = world.service.partners
    await commands.approve(partner_id, STAFF)
    await commands.add_member(partner_id, "two@example.com", MEMBER)
    rows = await world.service.partner_list.members(partner_id)
    outcomes = await asyncio.gather(
        *(commands.remove_member(partner_id, row["member_id"], MEMBER) for row in rows),
        return_exceptions=True,
    )

    assert [one.code for one in outcomes if isinstance(one, Refusal)] == ["last_member"]
    assert len(await world.service.partner_list.members(partner_id)) == 1


async def test_an_erased_partner_gets_no_new_member(world):
    """Without its key nothing personal can be sealed, so it is refused and nothing is written."""
    partner_id = await applying(world.service)
    async with world.service.accounts.transaction() as transaction:
        await transaction.connection.execute("delete from accounts.data_keys")
    with pytest.raises(Refusal) as refused:
        await world.service.partners.add_member(partner_id, "two@example.com", STAFF)

    assert refused.value.code == "partner_state"
    assert len(await world.service.partner_list.members(partner_id)) == 1


async def test_being_added_to_a_waiting_team_hinders_nobody(service):
    """A stranger's application, with somebody else in its team, is not that person's own."""
    strangers = await applying(service, "stranger@example.com")
    await service.partners.add_member(strangers, "dev@example.com", STAFF)
    assert await applying(service, "dev@example.com") != strangers


async def test_who_applied_waits_for_the_review(service):
    """They add nobody and cannot leave, so that no other application of theirs is taken."""
    partner_id, commands = await applying(service), service.partners
    (member_id,) = (await commands.look(partner_id)).members
    with pytest.raises(Refusal, match="auth_partner_not_approved"):
        await commands.add_member(partner_id, "two@example.com", MEMBER)
    with pytest.raises(Refusal, match="applicant_stays"):
        await commands.remove_member(partner_id, member_id, MEMBER)
    with pytest.raises(Refusal, match="application_pending"):
        await applying(service)
    await commands.decline(partner_id, STAFF)
    await commands.remove_member(partner_id, member_id, MEMBER)
    assert await applying(service) != partner_id
