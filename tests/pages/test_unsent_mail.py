"""Mail that does not arrive is shown to whoever can do something about it."""

from service.pages.words import TEXTS
from tests.pages.visitor import Visitor
from tests.world import STAFF


async def test_unsent_mail_is_shown_beside_its_onboarding(world, owner):
    """In the console and in the back office: withheld, or given up; not while it is only late."""
    partner = await world.partner()
    service, partner_id = world.service, partner.partner_id
    await service.partners.change_settings(partner_id, STAFF, suppress_email=True)
    await service.partners.add_member(partner_id, "member@example.com", STAFF)
    await service.staff.add("team@example.com", STAFF)
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "new@example.com"}
    onboarding_id = (await partner.call("POST", "/onboardings", json=body)).json()["onboarding_id"]
    row = await service.modes["live"].onboarding_list.by_id(onboarding_id)
    owner.execute(
        "insert into live.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)"
        " values (%s, %s, now(), 'infinity')",
        [onboarding_id, row["stream_id"]],
    )
    member = await Visitor(world).sign_in("member@example.com")
    staff = await Visitor(world).sign_in("team@example.com")
    for state, shown in [("waiting", None), ("withheld", "withheld"), ("failed", "failed")]:
        owner.execute("update live.mail_outbox set state = %s", [state])
        for page in (
            await member.get(f"/console/{partner_id}/onboardings"),
            await staff.get(f"/backoffice/entities/{row['entity_id']}"),
        ):
            assert onboarding_id in page.text
            for one in ("withheld", "failed"):
                assert (TEXTS[f"onboardings.mail.{one}"] in page.text) is (one == shown)
