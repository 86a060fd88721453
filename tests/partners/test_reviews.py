"""The team's review of a partner: who looked at what, and a note that partners never see."""

import pytest

from service.core.errors import Refusal
from service.facts.reviews import PartnerReviewed, review_stream
from service.ledger.events import Cause
from tests.memory_ledger import memory_world
from tests.world import STAFF

ANNA, BEN = Cause("staff:stf_anna", "req_1"), Cause("staff:stf_ben", "req_2")


async def applied(service):
    """Return the id of a partner that waits for its review."""
    return await service.partners.apply(
        company="Ledger Books",
        contact_name="Zoë Letterhead",
        use="Referrals.",
        email="dev@example.com",
        company_number="canary-00000000",
        cause=STAFF,
    )


@pytest.fixture
async def service(tmp_path):
    """Return a service in memory, where neither a race nor what is stored is the point."""
    return memory_world(tmp_path).service


async def test_each_check_and_the_note_name_who_and_when(service):
    """A tick keeps the name of whoever set it; one that was taken away is nobody's."""
    partner_id = await applied(service)
    save = service.reviews.save
    await save(partner_id, ["website", "register"], "Looks fine.", 0, ANNA)
    await save(partner_id, ["contact", "website"], "Looks fine.", 1, BEN)
    await save(partner_id, ["website", "contact"], "Looks fine.", 1, BEN)  # nothing new
    await service.partners.decline(partner_id, BEN, "No.")
    await service.partners.approve(partner_id, ANNA, None)
    partner, review, decisions = await service.reviews.look(partner_id)

    assert partner.company_number == "canary-00000000"
    assert {check: by.actor for check, by in review.checks.items()} == {
        "website": ANNA.actor,
        "contact": BEN.actor,
    }
    assert review.note == "Looks fine."
    assert review.noted is not None
    assert review.noted.actor == ANNA.actor
    assert [(one.status, one.by.actor) for one in decisions] == [
        ("declined", BEN.actor),
        ("approved", ANNA.actor),
    ]


async def test_nobody_overwrites_what_they_have_not_seen(service):
    """A review that somebody has saved since is refused, and stays."""
    partner_id = await applied(service)
    await service.reviews.save(partner_id, [], "Anna's.", 0, ANNA)
    with pytest.raises(Refusal, match="form_outdated"):
        await service.reviews.save(partner_id, [], "Ben's.", 0, BEN)
    assert (await service.reviews.look(partner_id)).review.note == "Anna's."
    await service.reviews.save(partner_id, [], "", 1, BEN)
    assert (await service.reviews.look(partner_id)).review.note is None


async def test_a_review_is_known_as_it_was(service):
    """At each version; of none, and of what no version is, nothing was looked at."""
    partner_id = await applied(service)
    await service.reviews.save(partner_id, ["website"], "Anna's.", 0, ANNA)
    await service.reviews.save(partner_id, ["contact"], "", 1, BEN)
    looks = [await service.reviews.look(partner_id, version) for version in (-1, 0, 1, 2, 3)]
    seen = [one.review for one in looks]
    first, second = (["website"], "Anna's."), (["contact"], None)
    assert [(list(one.checks), one.note) for one in seen] == [([], None)] * 2 + [first] + [
        second
    ] * 2


async def test_the_note_is_erased_with_the_partner(world, owner):
    """It is stored under the partner's key alone: without that, ticks stay and the note is gone."""
    service = world.service
    partner_id = await applied(service)
    await service.reviews.save(partner_id, ["website"], "canary-note", 0, ANNA)
    async with service.accounts.transaction() as transaction:
        states = await transaction.connection.fetch("select state from accounts.events")
    owner.execute("delete from accounts.data_keys")
    _, review, _ = await service.reviews.look(partner_id)

    assert b"canary" not in b"".join(row["state"] for row in states)
    assert (list(review.checks), review.note) == (["website"], None)
    with pytest.raises(Refusal, match="partner_state"):
        await service.reviews.save(partner_id, ["website"], "Another.", 1, ANNA)
    await service.reviews.save(partner_id, [], "", 1, ANNA)
    async with service.accounts.transaction() as transaction:
        past = await transaction.read(review_stream(partner_id))
    assert [type(one.event) for one in past] == [PartnerReviewed, PartnerReviewed]
