"""The developer console: applying, choosing settings, forming a team."""

import re

import pytest
from playwright.sync_api import expect

from service.facts.partners import partner_stream
from tests.pages.developing import apply, approved, developer, issue, issued
from tests.world import STAFF

PAYLOAD = "<script>document.title='x'</script>\"'><img src=x onerror=alert(1)>"


def test_from_the_application_to_the_first_call(site):
    """Apply, be approved, issue a key, and call the API with it."""
    page = site.visitor()
    partner_id = apply(site, page, site.mailbox())
    expect(page.get_by_text("in review", exact=True)).to_be_visible()
    expect(page.get_by_text("www.example.com", exact=True)).to_be_visible()
    page.get_by_role("link", name="Keys").click()
    expect(page.get_by_text("You can issue keys once")).to_be_visible()
    expect(page.get_by_role("button", name="Issue a key")).to_have_count(0)
    site.do(lambda service: service.partners.approve(partner_id, STAFF))
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Use of your limit")).to_be_visible()
    page.get_by_role("link", name="Keys", exact=True).click()
    page.get_by_label("Test:").check()
    page.get_by_role("button", name="Issue a key").click()
    expect(page.get_by_text("even though it begins with pk_")).to_be_visible()
    token = page.locator(".copyable code").inner_text()
    page.get_by_role("link", name="I have copied it").click()
    row = page.get_by_role("row").filter(has_text=token.split(".")[1])
    expect(row).to_contain_text("never")
    entity_id = site.do(lambda service: service.sandbox.ensure(partner_id)).connected_entity_id
    answer = site.api(token, "GET", f"/claims?entity_id={entity_id}")
    assert (answer.status_code, answer.json()["claims"]) == (200, [])


def test_a_declined_application_says_why(site):
    """The reason is shown, and the same person can apply again."""
    page = site.visitor()
    email = site.mailbox()
    partner_id = apply(site, page, email)
    page.goto("/console/apply")
    page.get_by_label("Company", exact=True).fill("Again")
    page.get_by_label("Your name").fill("Dev")
    page.get_by_label("What will you use the API for?").fill("The same.")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("under review")
    site.do(lambda service: service.partners.decline(partner_id, STAFF, "No imprint on the site."))
    page.goto(f"/console/{partner_id}")
    expect(page.get_by_text("declined", exact=True)).to_be_visible()
    expect(page.get_by_text("No imprint on the site.")).to_be_visible()
    page.get_by_role("link", name="Apply again").click()
    page.get_by_label("Company", exact=True).fill("Ledger Books II")
    page.get_by_label("Your name").fill("Dev")
    page.get_by_label("What will you use the API for?").fill("With an imprint.")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url(lambda url: "/console/ptn_" in url and partner_id not in url)
    page.goto("/console")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your partners")
    expect(page.get_by_role("link", name="Ledger Books II")).to_be_visible()


def test_the_api_obeys_the_settings_at_once(site):
    """The next onboarding returns the link and sends no mail, as set."""
    page, partner_id = developer(site)
    token = issued(site, partner_id)

    def onboard():
        body = {"partner_user_id": site.mailbox(), "company_name": "C", "user_email": email}
        return site.api(token, "POST", "/onboardings", json=body).json()

    email = site.mailbox()
    assert "magic_link_url" not in onboard()
    assert site.mailed_link(email, "onboarding")
    page.goto(f"/console/{partner_id}/settings")
    expect(page.get_by_label("magic_link_url")).not_to_be_checked()
    page.get_by_label("magic_link_url").check()
    page.get_by_label("Do not email").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()
    email = site.mailbox()
    assert onboard()["magic_link_url"].startswith(f"{site.url}/onboarding/")


@pytest.mark.parametrize("scripts", [True, False])
def test_settings_that_lose_onboardings_need_confirmation(site, scripts):
    """The page warns when both are chosen, and saves them only after confirmation."""
    page, partner_id = developer(site, java_script_enabled=scripts)
    page.goto(f"/console/{partner_id}/settings")
    warning = page.get_by_text("nobody gets the link")
    know = page.get_by_label("I understand that onboardings")
    expect(warning).to_be_hidden()
    page.get_by_label("Do not email").check()
    expect(warning).to_be_visible()
    page.get_by_label("magic_link_url").check()
    expect(warning).to_be_hidden()
    page.get_by_label("magic_link_url").uncheck()
    with page.expect_response("**/settings") as answered:
        page.get_by_role("button", name="Save").click()
    assert answered.value.status == 400
    assert not suppressed(site, partner_id)
    expect(page.get_by_label("Do not email")).to_be_checked()
    expect(page.get_by_role("alert").get_by_text("nobody gets the link")).to_be_visible()
    know.check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()
    assert suppressed(site, partner_id)
    expect(warning).to_be_visible()
    expect(know).to_have_count(0)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()


def suppressed(site, partner_id):
    """Return whether a partner's links are not mailed."""
    return site.do(lambda service: service.partners.look(partner_id)).suppress_email


def test_team_members_are_added_and_removed_by_address(site):
    """A new colleague sees the console, can remove who added them, and is then the last."""
    page, colleague = site.visitor(), site.visitor()
    email, other = site.mailbox(), site.mailbox()
    partner_id = approved(site, email)
    site.sign_in(page, email)
    page.goto(f"/console/{partner_id}/team")
    expect(page.get_by_role("link", name="Remove")).to_have_count(0)
    site.sign_in(colleague, other, f"/console/{partner_id}/team")
    expect(colleague.locator("main")).to_contain_text("not_member")
    page.get_by_label("Email address").fill(other)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("rowheader").filter(has_text=other)).to_be_visible()
    colleague.goto("/console")
    colleague.get_by_role("link", name="Team").click()
    colleague.get_by_role("link", name=f"Remove {email}").click()
    colleague.get_by_role("button", name="Remove").click()
    expect(colleague.get_by_role("rowheader")).to_have_count(1)
    page.reload()
    expect(page.locator("main")).to_contain_text("not_member")
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))
    colleague.goto(f"/console/{partner_id}/team/{row['member_id']}/remove")
    colleague.get_by_role("button", name="Remove").click()
    expect(colleague.locator("main")).to_contain_text("last_member")


def test_a_script_in_every_field_stays_text(site):
    """Input is shown as written, and nothing runs."""
    page = site.visitor()
    site.keep_apart(page)
    alerts = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    site.sign_in(page, site.mailbox(), "/console")
    page.get_by_label("Company", exact=True).fill(PAYLOAD)
    page.get_by_label("Your name").fill(PAYLOAD)
    page.get_by_label("What will you use the API for?").fill(PAYLOAD)
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("/console/ptn_*")
    partner_id = page.url.rpartition("/")[2]
    expect(page.get_by_role("definition").filter(has_text=PAYLOAD)).to_have_count(3)
    site.do(lambda service: service.partners.decline(partner_id, STAFF, PAYLOAD))
    page.reload()
    expect(page.get_by_text(f"Reason: {PAYLOAD}")).to_be_visible()
    site.do(lambda service: service.partners.approve(partner_id, STAFF))
    page.goto(f"/console/{partner_id}/team")
    page.locator("form[action$=team]").evaluate("form => { form.noValidate = true; }")
    page.get_by_label("Email address").fill(PAYLOAD)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_label("Email address")).to_have_value(PAYLOAD)
    page.goto("/console/partners")
    expect(page.get_by_role("link", name=PAYLOAD)).to_be_visible()
    assert alerts == []
    assert page.locator("img, main script").count() == 0


def test_faults_are_shown_at_their_fields(site):
    """An incomplete application returns with its input and with errors at the fields."""
    page = site.visitor()
    site.sign_in(page, site.mailbox(), "/console")
    page.locator("form[action='/console/apply']").evaluate("form => { form.noValidate = true; }")
    page.get_by_label("Company", exact=True).fill("Ledger Books")
    page.get_by_label("Your name").fill("   ")
    with page.expect_response("**/console/apply") as answered:
        page.get_by_role("button", name="Apply").click()
    assert answered.value.status == 400
    expect(page.get_by_label("Company", exact=True)).to_have_value("Ledger Books")
    assert page.locator("[aria-invalid]").evaluate_all("all => all.map(one => one.name)") == [
        "contact_name",
        "use",
    ]


def test_every_change_names_the_person(site):
    """Console events have the person's id as actor, without an address."""
    page = site.visitor()
    partner_id = apply(site, page, site.mailbox())
    site.do(lambda service: service.partners.approve(partner_id, STAFF))
    issue(page, partner_id, "test")
    page.goto(f"/console/{partner_id}/settings")
    page.get_by_label("magic_link_url").check()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(f"/console/{partner_id}/settings?saved")

    async def read(service):
        async with service.accounts.transaction() as transaction:
            return await transaction.read(partner_stream(partner_id))

    events = site.do(read)
    by_people = [one for one in events if one.meta.actor != STAFF.actor]
    assert [type(one.event).__name__ for one in by_people] == [
        "PartnerApplied",
        "MemberAdded",
        "ApiKeyIssued",
        "PartnerSettingsChanged",
    ]
    (actor,) = {one.meta.actor for one in by_people}
    assert re.fullmatch(r"member:per_[0-9a-z]{26}", actor)
