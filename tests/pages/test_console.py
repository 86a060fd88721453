"""What a partner's people do in the developer console: apply, keys, settings, team."""

import re
import threading
import time
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from service.partners.events import partner_stream
from tests.world import STAFF

PAYLOAD = "<script>document.title='x'</script>\"'><img src=x onerror=alert(1)>"
TOKEN = re.compile(r"pk_(?:live|test)_ptn_\w+\.key_\w+\.\w+")


def apply(site, page, email, company="Ledger Books"):
    """Sign a person in and apply; answer the partner's id."""
    site.sign_in(page, email, "/console")
    page.get_by_label("Company").fill(company)
    page.get_by_label("Your name").fill("Dev Eloper")
    page.get_by_label("What will you use the API for?").fill("To refer our customers.")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**/console/ptn_*")
    return page.url.rpartition("/")[2]


def approved(site, page, email=None):
    """Answer the id of a partner whose member is signed in on the page."""
    partner_id = apply(site, page, email or site.mailbox())
    site.do(lambda service: service.partners.approve(partner_id, STAFF))
    return partner_id


def issue(page, partner_id, mode):
    """Issue a key; answer its token."""
    page.goto(f"/console/{partner_id}/keys")
    page.get_by_label(f"{mode.capitalize()}:").check()
    page.get_by_role("button", name="Issue a key").click()
    return page.locator(".copyable code").inner_text()


def test_from_the_application_to_the_first_call(site):
    """Apply, be approved, issue a key, and call the API with it."""
    page = site.visitor()
    partner_id = apply(site, page, site.mailbox())
    expect(page.get_by_text("in review", exact=True)).to_be_visible()
    page.get_by_role("link", name="Keys").click()
    expect(page.get_by_text("Keys can be issued once")).to_be_visible()
    expect(page.get_by_role("button", name="Issue a key")).to_have_count(0)
    site.do(lambda service: service.partners.approve(partner_id, STAFF))
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_text("approved", exact=True)).to_be_visible()
    page.get_by_role("link", name="Go to your keys").click()
    page.get_by_label("Test:").check()
    page.get_by_role("button", name="Issue a key").click()
    expect(page.get_by_text("although it begins with pk_")).to_be_visible()
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
    page.get_by_label("Company").fill("Again")
    page.get_by_label("Your name").fill("Dev")
    page.get_by_label("What will you use the API for?").fill("The same.")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("is being looked at")
    site.do(lambda service: service.partners.decline(partner_id, STAFF, "No imprint on the site."))
    page.goto(f"/console/{partner_id}")
    expect(page.get_by_text("declined", exact=True)).to_be_visible()
    expect(page.get_by_text("No imprint on the site.")).to_be_visible()
    page.get_by_role("link", name="Apply again").click()
    page.get_by_label("Company").fill("Ledger Books II")
    page.get_by_label("Your name").fill("Dev")
    page.get_by_label("What will you use the API for?").fill("With an imprint.")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url(lambda url: "/console/ptn_" in url and partner_id not in url)
    page.goto("/console")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your partners")
    expect(page.get_by_role("link", name="Ledger Books II")).to_be_visible()


def test_a_token_is_shown_once(site):
    """Neither reloading nor going back and forth shows it, and a form sent twice issues once."""
    page = site.visitor()
    partner_id = approved(site, page)
    token = issue(page, partner_id, "live")
    page.reload()
    expect(page.get_by_text("This form was sent already")).to_be_visible()
    assert token.split(".")[2] not in page.content()
    page.go_back()
    assert token.split(".")[2] not in page.content()
    page.goto(f"/console/{partner_id}/keys")
    assert not TOKEN.search(page.content())
    keys = site.do(lambda service: service.partner_list.keys(partner_id))
    log = (site.mail_dir.parent / "serve.log").read_text()
    assert [key["key_id"] for key in keys] == [token.split(".")[1]]
    assert token.split(".")[2] not in log


def test_a_key_is_rolled_under_traffic(site):
    """With the old key called all the while, no call fails until its moment, and all do after."""
    page = site.visitor()
    partner_id = approved(site, page)
    token = issue(page, partner_id, "live")
    calls, ended = [], threading.Event()

    def call():
        while not ended.is_set():
            before = time.time()
            answer = site.api(token, "GET", "/claims?entity_id=ent_x")
            calls.append((before, time.time(), answer.json()["code"]))

    thread = threading.Thread(target=call)
    thread.start()
    try:
        key_id = token.split(".")[1]
        time.sleep(0.3)
        new = site.do(
            lambda service: service.partners.roll_key(
                partner_id, key_id, timedelta(seconds=2), STAFF
            )
        ).token
        rows = site.do(lambda service: service.partner_list.keys(partner_id))
        ends_at = next(row["revoked_at"] for row in rows if row["revoked_at"]).timestamp()
        page.goto(f"/console/{partner_id}/keys")
        expect(page.get_by_text("ends", exact=True)).to_be_visible()
        time.sleep(max(0, ends_at - time.time()) + 0.5)
    finally:
        ended.set()
        thread.join()
    assert {code for _, after, code in calls if after < ends_at} == {"entity_not_found"}
    assert {code for before, _, code in calls if before >= ends_at} == {"auth_revoked"}
    assert site.api(new, "GET", "/claims?entity_id=ent_x").json()["code"] == "entity_not_found"


@pytest.mark.parametrize(
    ("choice", "code"), [("no longer", "auth_revoked"), ("for 24 hours", "entity_not_found")]
)
def test_a_key_is_rolled_in_the_console(site, choice, code):
    """The new key works at once, the old one as long as was chosen; sent again, nothing happens."""
    page = site.visitor()
    partner_id = approved(site, page)
    old = issue(page, partner_id, "live")
    page.goto(f"/console/{partner_id}/keys")
    page.get_by_role("link", name="Roll").click()
    page.get_by_label(choice).check()
    page.get_by_role("button", name="Roll the key").click()
    new = page.locator(".copyable code").inner_text()
    page.reload()
    expect(page.get_by_text("This form was sent already")).to_be_visible()
    assert site.api(old, "GET", "/claims?entity_id=ent_x").json()["code"] == code
    assert site.api(new, "GET", "/claims?entity_id=ent_x").json()["code"] == "entity_not_found"
    assert len(site.do(lambda service: service.partner_list.keys(partner_id))) == 2


def test_a_key_is_revoked_and_shows_its_last_use(site):
    """The list names when a key was used; after a confirmation it is refused from then on."""
    page = site.visitor()
    partner_id = approved(site, page)
    token = issue(page, partner_id, "live")
    site.api(token, "GET", "/claims?entity_id=ent_x")
    row = page.get_by_role("row").filter(has_text=token.split(".")[1])
    deadline = time.monotonic() + 20
    page.goto(f"/console/{partner_id}/keys")
    while "never" in row.inner_text():  # calls are noted a second later
        assert time.monotonic() < deadline
        time.sleep(0.2)
        page.reload()
    page.get_by_role("link", name="Revoke").click()
    assert site.api(token, "GET", "/claims?entity_id=ent_x").json()["code"] == "entity_not_found"
    page.get_by_role("button", name="Revoke the key").click()
    expect(row).to_contain_text("revoked")
    assert site.api(token, "GET", "/claims?entity_id=ent_x").json()["code"] == "auth_revoked"


def test_the_api_obeys_the_settings_at_once(site):
    """With the link returned and the mail suppressed, that is what the next onboarding does."""
    page = site.visitor()
    partner_id = approved(site, page)
    token = issue(page, partner_id, "live")

    def onboard():
        body = {"partner_user_id": site.mailbox(), "company_name": "C", "user_email": email}
        return site.api(token, "POST", "/onboardings", json=body).json()

    email = site.mailbox()
    assert "magic_link_url" not in onboard()
    assert site.mailed_link(email, "onboarding")
    page.goto(f"/console/{partner_id}/settings")
    expect(page.get_by_label("magic_link_url")).not_to_be_checked()
    page.get_by_label("magic_link_url").check()
    page.get_by_label("Do not send").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    email = site.mailbox()
    assert onboard()["magic_link_url"].startswith(f"{site.url}/onboarding/")
    page.get_by_label("magic_link_url").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("nobody gets the link")).to_be_visible()
    expect(page.get_by_label("Do not send")).to_be_checked()
    assert "magic_link_url" not in onboard()


def test_a_team_is_made_of_who_signs_in_with_an_address(site):
    """A colleague is added, sees the console, removes who added them, and cannot leave alone."""
    page, colleague = site.visitor(), site.visitor()
    email, other = site.mailbox(), site.mailbox()
    partner_id = approved(site, page, email)
    page.goto(f"/console/{partner_id}/team")
    expect(page.get_by_role("link", name="Remove")).to_have_count(0)
    site.sign_in(colleague, other, f"/console/{partner_id}/team")
    expect(colleague.get_by_text("not_member")).to_be_visible()
    page.get_by_label("E-mail address").fill(other)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("rowheader").filter(has_text=other)).to_be_visible()
    colleague.goto("/console")
    colleague.get_by_role("link", name="Team").click()
    colleague.get_by_role("link", name=f"Remove {email}").click()
    colleague.get_by_role("button", name="Remove").click()
    expect(colleague.get_by_role("rowheader")).to_have_count(1)
    page.reload()
    expect(page.get_by_text("not_member")).to_be_visible()
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))
    colleague.goto(f"/console/{partner_id}/team/{row['member_id']}/remove")
    colleague.get_by_role("button", name="Remove").click()
    expect(colleague.get_by_text("last_member")).to_be_visible()


def places(partner_id, key_id, member_id):
    """Answer every page of a partner's."""
    return [
        f"/console/{partner_id}{path}"
        for path in (
            "",
            "/keys",
            f"/keys/{key_id}/roll",
            f"/keys/{key_id}/revoke",
            "/settings",
            "/team",
            f"/team/{member_id}/remove",
        )
    ]


def test_another_partner_is_refused_like_an_unknown_one(site):
    """Pages and forms answer the same, but for the request id, and change nothing."""
    page, stranger = site.visitor(), site.visitor()
    partner_id = approved(site, page)
    key_id = issue(page, partner_id, "live").split(".")[1]
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))
    mine = approved(site, stranger)
    stranger.goto(f"/console/{mine}/settings")
    csrf = stranger.locator("input[name=csrf]").first.input_value()
    before = site.do(lambda service: service.partners.look(partner_id))

    def answers(of, key, member):
        for path in places(of, key, member):
            for method, form in (("GET", None), ("POST", {"csrf": csrf, "overlap": "now"})):
                if (method, path) == ("POST", f"/console/{of}"):
                    continue
                answer = stranger.request.fetch(
                    path, method=method, form=form, headers={"Sec-Fetch-Site": "same-origin"}
                )
                yield answer.status, re.sub(r"req_\w+", "", answer.text())

    theirs = list(answers(partner_id, key_id, row["member_id"]))
    unknown = list(answers("ptn_none", "key_none", "mem_none"))
    assert theirs == unknown
    assert {status for status, _ in theirs} == {403}
    assert site.do(lambda service: service.partners.look(partner_id)) == before


def test_another_key_or_member_is_not_found(site):
    """Under one's own partner the ids of another are those of nobody."""
    page, stranger = site.visitor(), site.visitor()
    partner_id = approved(site, page)
    key_id = issue(page, partner_id, "live").split(".")[1]
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))
    mine = approved(site, stranger)
    for path, code in (
        (f"keys/{key_id}/roll", "key_not_found"),
        (f"keys/{key_id}/revoke", "key_not_found"),
        (f"team/{row['member_id']}/remove", "member_not_found"),
    ):
        answer = stranger.goto(f"/console/{mine}/{path}")
        assert answer.status == 404
        expect(stranger.get_by_text(code)).to_be_visible()


def test_a_script_in_every_field_stays_text(site):
    """What people write is shown as they wrote it, and runs nowhere."""
    page = site.visitor()
    alerts = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    site.sign_in(page, site.mailbox(), "/console")
    page.get_by_label("Company").fill(PAYLOAD)
    page.get_by_label("Your name").fill(PAYLOAD)
    page.get_by_label("What will you use the API for?").fill(PAYLOAD)
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**/console/ptn_*")
    partner_id = page.url.rpartition("/")[2]
    expect(page.get_by_role("definition").filter(has_text=PAYLOAD)).to_have_count(3)
    site.do(lambda service: service.partners.decline(partner_id, STAFF, PAYLOAD))
    page.reload()
    expect(page.get_by_text(f"The reason they gave: {PAYLOAD}")).to_be_visible()
    page.goto(f"/console/{partner_id}/team")
    page.locator("form[action$=team]").evaluate("form => { form.noValidate = true; }")
    page.get_by_label("E-mail address").fill(PAYLOAD)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_label("E-mail address")).to_have_value(PAYLOAD)
    page.goto("/console/partners")
    expect(page.get_by_role("link", name=PAYLOAD)).to_be_visible()
    assert alerts == []
    assert page.locator("img, main script").count() == 0


def test_faults_stand_at_their_fields(site):
    """An application that lacks something comes back as it was, with what is wrong where it is."""
    page = site.visitor()
    site.sign_in(page, site.mailbox(), "/console")
    page.locator("form[action='/console/apply']").evaluate("form => { form.noValidate = true; }")
    page.get_by_label("Company").fill("Ledger Books")
    page.get_by_label("Your name").fill("   ")
    with page.expect_response("**/console/apply") as answered:
        page.get_by_role("button", name="Apply").click()
    assert answered.value.status == 400
    expect(page.get_by_label("Company")).to_have_value("Ledger Books")
    assert page.locator("[aria-invalid]").evaluate_all("all => all.map(one => one.name)") == [
        "contact_name",
        "use",
    ]


def test_forged_forms_are_refused(site):
    """Without its token, with another session's, or from another site no form does anything."""
    page, other = site.visitor(), site.visitor()
    partner_id = approved(site, page)
    key_id = issue(page, partner_id, "live").split(".")[1]
    site.do(lambda service: service.partners.add_member(partner_id, "two@example.com", STAFF))
    row = site.do(lambda service: service.partner_list.members(partner_id))[1]
    page.goto(f"/console/{partner_id}/keys")
    csrf, drawn, proof = (
        page.locator(f"input[name={name}]").last.input_value()
        for name in ("csrf", "key_id", "proof")
    )
    approved(site, other)
    foreign = other.locator("input[name=csrf]").first.input_value()
    forms = {
        "/console/apply": {"company": "C", "contact_name": "N", "use": "U"},
        f"/console/{partner_id}/keys": {"mode": "live", "key_id": drawn, "proof": proof},
        f"/console/{partner_id}/keys/{key_id}/roll": {"overlap": "now"},
        f"/console/{partner_id}/keys/{key_id}/revoke": {},
        f"/console/{partner_id}/settings": {"return_link": "on"},
        f"/console/{partner_id}/team": {"email": "three@example.com"},
        f"/console/{partner_id}/team/{row['member_id']}/remove": {},
    }
    before = site.do(lambda service: service.partners.look(partner_id))
    same, cross = {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site"}
    forgeries = [
        ({}, same),
        ({"csrf": ""}, same),
        ({"csrf": foreign}, same),
        ({"csrf": csrf}, cross),
        ({"csrf": csrf}, {"Sec-Fetch-Site": "same-site"}),
        ({"csrf": csrf}, {"Origin": "https://example.com"}),
        ({"csrf": csrf}, {}),
    ]
    for path, fields in forms.items():
        for extra, headers in forgeries:
            answer = page.request.post(path, form=fields | extra, headers=headers)
            assert (answer.status, "cross_site_request" in answer.text()) == (403, True), path
    assert site.do(lambda service: service.partners.look(partner_id)) == before


def test_a_key_id_that_we_did_not_draw_is_refused(site):
    """A form cannot choose the id of the key that it asks for."""
    page = site.visitor()
    partner_id = approved(site, page)
    page.goto(f"/console/{partner_id}/keys")
    csrf, proof = (
        page.locator(f"input[name={name}]").last.input_value() for name in ("csrf", "proof")
    )
    form = {"csrf": csrf, "mode": "live", "key_id": "key_mine", "proof": proof}
    headers = {"Sec-Fetch-Site": "same-origin"}
    answer = page.request.post(f"/console/{partner_id}/keys", form=form, headers=headers)
    assert (answer.status, "validation_failed" in answer.text()) == (400, True)
    assert site.do(lambda service: service.partner_list.keys(partner_id)) == []


def test_a_form_that_was_open_when_the_account_was_revoked(site):
    """It issues nothing; the console stays, and says how things are."""
    page = site.visitor()
    partner_id = approved(site, page)
    page.goto(f"/console/{partner_id}/keys")
    site.do(lambda service: service.partners.revoke(partner_id, STAFF))
    page.get_by_role("button", name="Issue a key").click()
    expect(page.get_by_text("auth_partner_not_approved")).to_be_visible()
    page.goto("/console")
    expect(page.get_by_text("Our team has ended this account")).to_be_visible()
    assert site.do(lambda service: service.partner_list.keys(partner_id)) == []


def test_a_removed_member_can_do_nothing_with_an_open_form(site):
    """Their next click is refused, though they are signed in and the page is open."""
    page = site.visitor()
    email = site.mailbox()
    partner_id = approved(site, page, email)
    page.goto(f"/console/{partner_id}/settings")
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))

    async def replace(service):
        await service.partners.add_member(partner_id, "two@example.com", STAFF)
        await service.partners.remove_member(partner_id, row["member_id"], STAFF)

    site.do(replace)
    page.get_by_label("magic_link_url").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("not_member")).to_be_visible()
    assert not site.do(lambda service: service.partners.look(partner_id)).return_link


def test_every_change_names_the_person(site):
    """Events of the console have the person as actor: the same one, and no address."""
    page = site.visitor()
    partner_id = approved(site, page)
    issue(page, partner_id, "test")
    page.goto(f"/console/{partner_id}/settings")
    page.get_by_label("magic_link_url").check()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/settings?saved")

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
