"""Before going live: the sandbox, the tutorial, the checklist."""

import time

import psycopg
import pytest
from playwright.sync_api import expect

from tests.patience import until
from tests.world import STAFF, claim_body


@pytest.fixture
def developer(site):
    """Return a signed-in developer's page, the partner's id, and a test key."""
    page = site.visitor()
    partner_id, _ = site.partner("Ledger Books")
    email = site.mailbox()

    async def prepare(service):
        await service.sandbox.ensure(partner_id)
        await service.partners.add_member(partner_id, email, STAFF)
        return (await service.partners.issue_key(partner_id, "test", STAFF)).token

    test = site.do(prepare)
    site.sign_in(page, email, f"/console/{partner_id}/sandbox")
    return page, partner_id, test


def claim(site, key, entity_id, reference="case-1"):
    """Create a claim; return status, code and id."""
    answer = site.api(key, "POST", "/claims", json=claim_body(entity_id, reference))
    return answer.status_code, answer.json().get("code"), answer.json().get("claim_id")


def test_entities_are_disconnected_and_connected_again(site, developer):
    """The API follows from the next request on."""
    page, _, key = developer
    row = page.get_by_role("row").nth(1)
    entity_id = row.locator("code").inner_text()
    assert claim(site, key, entity_id)[0] == 201
    row.get_by_role("button", name="Disconnect").click()
    expect(row.get_by_text("disconnected", exact=True)).to_be_visible()
    assert claim(site, key, entity_id, "case-2")[:2] == (403, "partner_disconnected")
    row.get_by_role("button", name="Connect").click()
    expect(row.get_by_role("button", name="Disconnect")).to_be_visible()
    assert claim(site, key, entity_id, "case-2")[0] == 201
    never = page.get_by_role("row").nth(3)
    never_id = never.locator("code").inner_text()
    assert claim(site, key, never_id)[:2] == (403, "entity_not_owned")
    never.get_by_role("button", name="Connect").click()
    expect(never.get_by_role("button", name="Disconnect")).to_be_visible()
    assert claim(site, key, never_id)[0] == 201


def test_another_partner_s_entity_is_not_found(site, developer):
    """Neither another partner's sandbox nor a live business can be changed."""
    page, partner_id, _ = developer
    other_id, _ = site.partner("Another")
    others = site.do(lambda service: service.sandbox.ensure(other_id)).connected_entity_id
    live = site.entity(site.mailbox())
    answers = set()
    for entity_id in (others, live, "ent_none"):
        page.goto(f"/console/{partner_id}/sandbox")
        form = page.locator("main form").first
        form.evaluate(
            "(form, to) => { form.action = to }",
            f"/console/{partner_id}/sandbox/entities/{entity_id}",
        )
        with page.expect_navigation() as navigation:
            form.get_by_role("button").click()
        heading = page.get_by_role("heading", level=1).inner_text()
        answers.add((navigation.value.status, heading))
    assert answers == {(404, "Entity not found in your sandbox")}


def test_a_reset_frees_references_and_deletes_nothing(site, developer):
    """A reference can be used again; the old claim stays under its entity's id."""
    page, partner_id, key = developer
    old = page.get_by_role("row").nth(1).locator("code").inner_text()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "n@example.com"}
    first = site.api(key, "POST", "/onboardings", json=body)
    assert first.status_code == 201
    _, _, old_claim = claim(site, key, old)
    page.goto(f"/console/{partner_id}/sandbox")
    expect(page.get_by_text("None yet.")).to_have_count(0)
    page.get_by_role("link", name="Reset", exact=True).click()
    epoch_form = page.url
    page.get_by_role("button", name="Reset sandbox").click()
    expect(page.get_by_text("It was reset on")).to_be_visible()
    expect(page.get_by_text("None yet.")).to_be_visible()
    new = page.get_by_role("row").nth(1).locator("code").inner_text()
    assert new != old
    status, _, new_claim = claim(site, key, new)
    assert (status, new_claim != old_claim) == (201, True)
    # The same entity and the same reference, too: the epoch is part of the natural key.
    status, _, again = claim(site, key, old)
    assert (status, again != old_claim) == (201, True)
    second = site.api(key, "POST", "/onboardings", json=body)
    assert second.status_code == 201
    assert second.json()["onboarding_id"] != first.json()["onboarding_id"]
    listed = site.api(key, "GET", f"/claims?entity_id={old}").json()["claims"]
    assert old_claim in [one["claim_id"] for one in listed]
    assert page.goto(epoch_form).status == 200


def test_a_form_that_is_sent_twice_resets_once(developer):
    """The second post finds the new epoch already begun."""
    page, partner_id, _ = developer
    page.goto(f"/console/{partner_id}/sandbox/reset")
    second = page.context.new_page()
    second.goto(page.url)
    page.get_by_role("button", name="Reset sandbox").click()
    expect(page.get_by_role("button", name="Reset sandbox")).to_have_count(0)
    page.wait_for_load_state()
    ids = page.locator("tbody th code").all_inner_texts()
    second.get_by_role("button", name="Reset sandbox").click()
    assert ids
    expect(second.locator("tbody th code")).to_have_text(ids)


def test_the_tutorial_shows_its_key_once(site, developer):
    """The key is issued on demand, and in the first command alone."""
    page, partner_id, _ = developer
    page.goto(f"/console/{partner_id}/tutorial")
    assert "pk_test_ptn" not in page.content()
    page.get_by_role("button", name="Issue a test key").click()
    expect(page.locator("pre").first).to_contain_text(
        f"export CLAIMS_API_KEY=pk_test_{partner_id}."
    )
    page.wait_for_load_state()
    token = page.locator("pre").first.inner_text().rpartition(".")[2]
    page.reload()
    expect(page.get_by_text("This form was already sent")).to_be_visible()
    assert "pk_test_ptn" not in page.content()
    assert token not in (site.mail_dir.parent / "serve.log").read_text()


def test_the_checklist_follows_the_traffic(site, developer):
    """Completed items are shown in order; none can be ticked by hand."""
    page, partner_id, key = developer
    entity_id = page.get_by_role("row").nth(1).locator("code").inner_text()
    gone = page.get_by_role("row").nth(2).locator("code").inner_text()
    page.goto(f"/console/{partner_id}/checklist")
    assert done_on(page) == ["Issue a test key", "Issue a live key"]
    for _ in range(2):
        claim(site, key, entity_id)
    claim(site, key, gone)
    time.sleep(0.01)  # the clock of calls has milliseconds
    site.api(key, "GET", f"/claims?entity_id={entity_id}")
    claim(site, key, entity_id, "trigger_service_unavailable")
    last = site.api(key, "POST", "/claims", json=claim_body(entity_id, "case-2"))
    site.logged(last.headers["x-request-id"])
    site.do(lambda service: service.partners.change_settings(partner_id, STAFF, return_link=True))
    expected = [
        "Issue a test key",
        "Create a claim",
        "Send the same claim again",
        "List claims",
        "Recover from a client error",
        "Recover from a server error",
        "Handle a disconnected entity",
        "Decide on your settings",
        "Issue a live key",
    ]
    until(lambda: page.reload() and done_on(page) == expected, lambda: done_on(page), look=0.2)
    expect(page.get_by_text("9 of 13 done")).to_be_visible()
    assert page.locator("main form").count() == 0


def test_the_checklist_forgets_keys_that_end(site, developer):
    """Once all keys are revoked, the key item is open again."""
    page, partner_id, _ = developer

    async def revoke(service):
        for key in await service.partner_list.keys(partner_id):
            await service.partners.revoke_key(partner_id, key["key_id"], STAFF)

    page.goto(f"/console/{partner_id}/checklist")
    assert done_on(page) == ["Issue a test key", "Issue a live key"]
    site.do(revoke)
    page.reload()
    assert done_on(page) == []


def done_on(page):
    """Return the completed items."""
    items = page.locator(".check").filter(has=page.get_by_text("done", exact=True))
    return [text.removeprefix("done").strip() for text in items.locator("h2").all_inner_texts()]


def test_an_unapproved_partner_has_no_sandbox(site):
    """The page says so, and the tutorial offers no key."""
    page = site.visitor()
    email = site.mailbox()

    async def prepare(service):
        partner_id = await service.partners.add("New", "n@example.com", STAFF)
        await service.partners.add_member(partner_id, email, STAFF)
        return partner_id

    partner_id = site.do(prepare)
    site.sign_in(page, email, f"/console/{partner_id}/sandbox")
    expect(page.get_by_role("heading", level=1)).to_have_text("Account not approved")
    page.goto(f"/console/{partner_id}/tutorial")
    expect(page.get_by_text("You can issue keys once our team")).to_be_visible()
    expect(page.get_by_role("button", name="Issue a test key")).to_have_count(0)
    for place in ("", "/checklist"):
        page.goto(f"/console/{partner_id}{place}")
        assert page.locator("a[href*=sandbox]").count() == 0, "it would be refused"
    site.do(lambda service: service.partners.approve(partner_id, STAFF))
    page.reload()
    expect(page.get_by_role("link", name="Sandbox", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Find one in the sandbox")).to_be_visible()


def test_viewing_the_sandbox_appends_no_event(site):
    """Only the subscriber creates fixtures."""
    partner_id, _ = site.partner("Looks only")
    email = site.mailbox()
    site.do(lambda service: service.partners.add_member(partner_id, email, STAFF))
    page = site.visitor()
    site.sign_in(page, email, f"/console/{partner_id}/sandbox")
    rows = page.get_by_role("rowheader")
    until(lambda: page.reload() and rows.count() == 3, look=0.1)
    with psycopg.connect(site.database_url) as owner:
        count = "select count(*) from test.events"
        before = owner.execute(count).fetchone()
        page.goto(f"/console/{partner_id}/sandbox")
        assert owner.execute(count).fetchone() == before
