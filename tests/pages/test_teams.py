"""Teams of partners that nobody has approved: a stranger applied, and named whom they liked."""

import pytest

from projections.partners.reader import PARTNERS_MAX
from service.pages.home import Landings
from tests.pages.visitor import Visitor
from tests.world import STAFF

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def applied(world, email, company="Books"):
    """Return somebody who applied, signed in, and the partner's id."""
    visitor = await Visitor(world).sign_in(email)
    form = {"company": company, "contact_name": "N", "use": "U"}
    answer = await visitor.post("/console/apply", **form)
    return visitor, answer.headers["location"].rpartition("/")[2]


async def members_of(world, partner_id):
    """Return the ids of a partner's members, by their addresses."""
    members = (await world.service.partners.look(partner_id)).members
    return {one.email: member_id for member_id, one in members.items()}


async def test_only_an_approved_partners_people_add_anybody(shared):
    """The page has no form otherwise, and says when there will be one."""
    visitor, partner_id = await applied(shared, "adding@example.com")
    path, commands = f"/console/{partner_id}/team", shared.service.partners

    async def refused():
        page = (await visitor.get(path)).text
        answer = await visitor.post(path, email="victim@example.com")
        assert (answer.status_code, "auth_partner_not_approved" in answer.text) == (403, True)
        assert ('name="email"' in page, "Only approved accounts" in page) == (False, True)
        assert list(await members_of(shared, partner_id)) == ["adding@example.com"]

    await refused()
    await commands.decline(partner_id, STAFF)
    await refused()
    await commands.approve(partner_id, STAFF)
    assert 'name="email"' in (await visitor.get(path)).text
    assert (await visitor.post(path, email="no address")).status_code == 400
    await commands.revoke(partner_id, STAFF)
    await refused()


async def test_adding_somebody_is_confirmed(shared):
    """Also where they were in the team before, which changes nothing."""
    visitor, partner_id = await applied(shared, "confirmed@example.com")
    await shared.service.partners.approve(partner_id, STAFF)
    path, shown = f"/console/{partner_id}/team", []
    for email in ("new@example.com", "New@Example.com"):
        answer = await visitor.post(path, email=email)
        shown.append((await visitor.get(answer.headers["location"])).text)
    assert ["Your colleague was added" in page for page in shown] == [True, False]
    assert ["is already on the team" in page for page in shown] == [False, True]
    assert len(await members_of(shared, partner_id)) == 2


async def test_who_was_added_to_an_application_sees_nobody_and_can_leave(shared):
    """Also as the last one; whoever applied stays until the review."""
    applicant, partner_id = await applied(shared, "applicant@example.com")
    path, victims = f"/console/{partner_id}/team", ["victim1@example.com", "victim2@example.com"]
    for email in victims:  # as the applicant could before it took an approval
        await shared.service.partners.add_member(partner_id, email, STAFF)
    members = await members_of(shared, partner_id)
    visitors = {email: await Visitor(shared).sign_in(email) for email in victims}
    for email, visitor in {**visitors, "applicant@example.com": applicant}.items():
        page = (await visitor.get(path)).text
        assert [one in page for one in members] == [one == email for one in members]
        for other in members.keys() - {email}:
            remove = f"{path}/{members[other]}/remove"
            answers = [await visitor.get(remove), await visitor.post(remove)]
            assert [answer.status_code for answer in answers] == [404, 404]
        assert (f"{members[email]}/remove" in page) == (email in victims)
    stays = await applicant.post(f"{path}/{members['applicant@example.com']}/remove")
    assert (stays.status_code, "applicant_stays" in stays.text) == (409, True)
    await shared.service.partners.decline(partner_id, STAFF)
    for email, visitor in {"applicant@example.com": applicant, **visitors}.items():
        left = await visitor.post(f"{path}/{members[email]}/remove")
        assert left.headers["location"] == "/console"
    assert await members_of(shared, partner_id) == {}


async def test_applications_of_others_lead_nobody_anywhere(shared):
    """Signing in leads to one's account, and the console lists them apart, as what they are."""
    victim, added = "led@example.com", shared.service.partners.add_member
    _, strangers = await applied(shared, "stranger@example.com", "Security notice")
    await added(strangers, victim, STAFF)
    visitor = await Visitor(shared).sign_in(victim)
    landings = Landings(shared.service.accounts.database)
    assert (await landings.of(visitor.person)).home == "/account"
    listed = (await visitor.get("/console")).text
    assert 0 < listed.index("others added you to") < listed.index("Security notice")
    visitor, own = await applied(shared, victim)
    assert (await landings.of(visitor.person)).home == "/console"
    assert (await visitor.get("/console")).headers["location"] == f"/console/{own}"
    await shared.service.partners.approve(strangers, STAFF)
    assert "others added you to" not in (await visitor.get("/console")).text
    await shared.service.partners.revoke(strangers, STAFF)
    assert (await visitor.get("/console")).headers["location"] == f"/console/{own}"


async def test_the_list_of_a_persons_partners_is_bounded(shared):
    """Their own come first, whatever came before; the page says that there are more."""
    victim, commands = "crowded@example.com", shared.service.partners
    for number in range(PARTNERS_MAX + 1):
        partner_id = await commands.add("<" * 255, f"{number}@example.com", STAFF)
        await commands.add_member(partner_id, victim, STAFF)
    visitor, own = await applied(shared, victim, "My own")
    page = await visitor.get("/console/partners")
    assert page.text.count('<a href="/console/ptn_') == PARTNERS_MAX
    assert page.text.index(own) < page.text.index("others added you to")
    assert f"more teams than the {PARTNERS_MAX}" in page.text
    assert len(page.content) < 50_000
