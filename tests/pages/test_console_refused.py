"""What the developer console refuses: other partners' people, forged forms, removed members."""

import re

from playwright.sync_api import expect

from tests.pages.developing import approved, developer, issued
from tests.world import STAFF


def places(partner_id, key_id, member_id):
    """Return the paths of all of a partner's pages."""
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
    """Pages and forms answer alike but for the request id, and change nothing."""
    partner_id = approved(site, site.mailbox())
    key_id = issued(site, partner_id).split(".")[1]
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))
    stranger, mine = developer(site)
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
    """Under one's own partner, ids of another are unknown."""
    partner_id = approved(site, site.mailbox())
    key_id = issued(site, partner_id).split(".")[1]
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))
    stranger, mine = developer(site)
    for path, code in (
        (f"keys/{key_id}/roll", "key_not_found"),
        (f"keys/{key_id}/revoke", "key_not_found"),
        (f"team/{row['member_id']}/remove", "member_not_found"),
    ):
        answer = stranger.goto(f"/console/{mine}/{path}")
        assert answer.status == 404
        expect(stranger.locator("main")).to_contain_text(code)


def test_a_revoked_partner_reads_its_settings(site):
    """Nothing can be saved any more; the page stays."""
    page, partner_id = developer(site)
    page.goto(f"/console/{partner_id}/settings")
    save = page.get_by_role("button", name="Save")
    expect(save).to_be_visible()
    site.do(lambda service: service.partners.revoke(partner_id, STAFF))
    save.click()
    expect(page.get_by_text("Our team has revoked this account")).to_be_visible()
    assert page.goto(f"/console/{partner_id}/settings").status == 200
    expect(save).to_have_count(0)


def test_forged_forms_are_refused(site):
    """Forms without a token, with another session's, or from another site do nothing."""
    page, partner_id = developer(site)
    key_id = issued(site, partner_id).split(".")[1]
    site.do(lambda service: service.partners.add_member(partner_id, "two@example.com", STAFF))
    row = site.do(lambda service: service.partner_list.members(partner_id))[1]
    page.goto(f"/console/{partner_id}/keys")
    csrf, drawn, proof = (
        page.locator(f"input[name={name}]").last.input_value()
        for name in ("csrf", "key_id", "proof")
    )
    other, theirs = developer(site)
    other.goto(f"/console/{theirs}")
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
            status, code = (
                (409, "session_changed") if headers is same else (403, "cross_site_request")
            )
            assert (answer.status, code in answer.text()) == (status, True), path
    assert site.do(lambda service: service.partners.look(partner_id)) == before


def test_a_revoked_account_cannot_issue_keys(site):
    """An open form issues nothing; the console remains and shows the state."""
    page, partner_id = developer(site)
    page.goto(f"/console/{partner_id}/keys")
    site.do(lambda service: service.partners.revoke(partner_id, STAFF))
    page.get_by_role("button", name="Issue a key").click()
    expect(page.locator("main")).to_contain_text("auth_partner_not_approved")
    page.goto("/console")
    expect(page.get_by_text("Our team has revoked this account")).to_be_visible()
    assert site.do(lambda service: service.partner_list.keys(partner_id)) == []


def test_a_removed_member_can_do_nothing_with_an_open_form(site):
    """Their next request is refused, although they are signed in and the page is open."""
    page, partner_id = developer(site)
    page.goto(f"/console/{partner_id}/settings")
    (row,) = site.do(lambda service: service.partner_list.members(partner_id))

    async def replace(service):
        await service.partners.add_member(partner_id, "two@example.com", STAFF)
        await service.partners.remove_member(partner_id, row["member_id"], STAFF)

    site.do(replace)
    page.get_by_label("magic_link_url").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text("not_member")
    assert not site.do(lambda service: service.partners.look(partner_id)).return_link
