"""Traffic in the console: requests, errors, usage, links, claims."""

import re

import pytest
from playwright.sync_api import expect

from tests.patience import until
from tests.world import STAFF, claim_body

PAYLOAD = "<script>document.title='x'</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture
def developer(site):
    """Return a signed-in developer's page, the partner's id, and a key of each mode."""
    page = site.visitor()
    partner_id, live = site.partner("Ledger Books")
    email = site.mailbox()

    async def prepare(service):
        await service.partners.add_member(partner_id, email, STAFF)
        await service.sandbox.ensure(partner_id)
        return (await service.partners.issue_key(partner_id, "test", STAFF)).token

    test = site.do(prepare)
    site.sign_in(page, email)
    return page, partner_id, {"live": live, "test": test}


def fixtures(site, partner_id):
    """Return the ids of a partner's fixtures."""
    return site.do(lambda service: service.sandbox.ensure(partner_id))


def test_calls_are_listed_filtered_and_explained(site, developer):
    """From the filtered list to one call and its advice, and errors by code."""
    page, partner_id, keys = developer
    entity_id = fixtures(site, partner_id).connected_entity_id
    site.api(keys["test"], "GET", f"/claims?entity_id={entity_id}")
    refused = site.api(keys["test"], "GET", "/claims?entity_id=ent_none")
    refused_id = refused.headers["x-request-id"]
    site.logged(refused_id)
    page.goto(f"/console/{partner_id}/requests?mode=test")
    rows = page.get_by_role("row")
    expect(rows).to_have_count(3)
    listed = page.get_by_text("Calls on this page: ").element_handle()
    page.get_by_label("Code").select_option("entity_not_found")  # at once, by HTMX
    expect(rows).to_have_count(2)
    assert listed.inner_text() == "Calls on this page: 1"  # a screen reader watches this element
    expect(page).to_have_url(re.compile("code=entity_not_found"))
    page.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("404")
    expect(rows.nth(1)).to_contain_text("GET /v1/claims")
    expect(page.get_by_label("Code")).to_have_value("entity_not_found")
    page.get_by_role("link", name=refused_id).click()
    expect(page.get_by_text("No such entity.")).to_be_visible()
    expect(page.get_by_text("None. It was a read, was refused")).to_be_visible()
    assert page.get_by_role("link", name="See the reference").get_attribute("href") == (
        "/docs#error-entity_not_found"
    )
    page.goto(f"/console/{partner_id}/errors?mode=test")
    expect(page.get_by_role("heading", name="entity_not_found")).to_be_visible()
    page.get_by_role("link", name="Show requests with").click()
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="Live", exact=True).click()
    expect(page.get_by_text("No calls match.")).to_be_visible()
    expect(page.get_by_label("Code")).to_have_value("entity_not_found")


def test_calls_are_found_by_time_and_by_request_id(site, developer):
    """A time filter survives switching the mode; an id leads to its call."""
    page, partner_id, keys = developer
    request_id = site.api(keys["test"], "GET", "/claims?entity_id=e").headers["x-request-id"]
    site.logged(request_id)
    page.goto(f"/console/{partner_id}/requests?mode=test")
    rows = page.get_by_role("row")
    page.get_by_label("Before (UTC)").fill("2026-01-01T00:00:01")
    expect(page.get_by_text("No calls match.")).to_be_visible()
    page.get_by_role("link", name="Live", exact=True).click()
    expect(page.get_by_label("Before (UTC)")).to_have_value("2026-01-01T00:00:01")
    page.get_by_label("Before (UTC)").fill("2999-01-01T00:00:01")
    expect(page).to_have_url(re.compile("until=2999"))
    page.get_by_role("link", name="Test", exact=True).click()
    expect(rows).to_have_count(2)
    page.goto(f"/console/{partner_id}/requests")
    page.get_by_label("Request ID").fill(f" {request_id} ")
    page.get_by_role("button", name="Open request").click()
    expect(page).to_have_url(re.compile(f"/requests/{request_id}.mode=test"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Request")
    page.go_back()
    page.get_by_label("Request ID").fill("req/../none")
    page.get_by_role("button", name="Open request").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Request not found")


def test_going_back_shows_what_the_fields_say_and_no_page_is_stored(site, developer):
    """After Back the list matches its filter fields, and browser storage is empty."""
    page, partner_id, keys = developer
    site.api(keys["test"], "GET", "/claims?entity_id=e")
    refused = site.api(keys["test"], "POST", "/claims", json={}).headers["x-request-id"]
    site.logged(refused)
    page.goto(f"/console/{partner_id}/requests?mode=test")
    rows = page.get_by_role("row")
    for code, count in (("validation_failed", 2), ("entity_not_found", 2), ("", 3)):
        page.get_by_label("Code").select_option(code)
        expect(rows).to_have_count(count)
        expect(page).to_have_url(re.compile(f"[?&]code={code}(&|$)"))
    for code in ("entity_not_found", "validation_failed"):
        page.go_back()
        expect(page).to_have_url(re.compile(f"[?&]code={code}(&|$)"))
        expect(page.get_by_label("Code")).to_have_value(code)
        expect(rows).to_have_count(2)
        expect(rows.nth(1)).to_contain_text(code)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(lambda url: "/requests" not in url)
    assert page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]


def test_a_filter_that_is_not_sent_says_so(site, developer):
    """The list stays as it was, under a filter that shows something else; the next try mends it."""
    page, partner_id, _ = developer
    site.keep_apart(page)
    page.goto(f"/console/{partner_id}/requests")
    page.context.set_offline(offline=True)
    page.get_by_label("Status").select_option("4xx")
    expect(page.get_by_role("alert")).to_contain_text("not filtered as chosen")
    page.context.set_offline(offline=False)
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile("class=4"))
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_filter_after_the_session_s_end_leads_to_signing_in(developer):
    """An answer other than the list is shown as a whole page."""
    page, partner_id, _ = developer
    page.goto(f"/console/{partner_id}/requests")
    page.context.clear_cookies()
    page.get_by_label("Status").select_option("4xx")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_one_call_s_page_shows_the_events_it_caused(site, developer):
    """Topic, position and time of each, but nothing of the request body."""
    page, partner_id, keys = developer
    entity_id = fixtures(site, partner_id).connected_entity_id
    more = {"defendant": {"name": "Canary Debtor"}, "message": "Canary"}
    body = claim_body(entity_id, "case-1", **more)
    request_id = site.api(keys["test"], "POST", "/claims", json=body).headers["x-request-id"]
    path = f"/console/{partner_id}/requests/{request_id}?mode=test"
    site.logged(request_id)
    events = page.get_by_text("ClaimCreated")
    until(lambda: page.goto(path) and events.count(), look=0.2)
    expect(page.get_by_role("row").nth(1)).to_contain_text("ClaimCreated")
    expect(page.get_by_role("row").nth(2)).to_contain_text("FirstMessagePosted")
    assert "Canary" not in page.content()
    page.goto(f"/console/{partner_id}/requests/{request_id}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Request not found")


def test_another_partner_s_call_is_not_found(site, developer):
    """Its request id answers like an unknown one."""
    page, partner_id, keys = developer
    request_id = site.api(keys["live"], "GET", "/claims?entity_id=e").headers["x-request-id"]
    site.logged(request_id)
    page.goto(f"/console/{partner_id}/requests")
    expect(page.get_by_text(request_id)).to_be_visible()
    other_id, _ = site.partner("Another")
    email = site.mailbox()
    site.do(lambda service: service.partners.add_member(other_id, email, STAFF))
    other = site.visitor()
    site.sign_in(other, email, f"/console/{other_id}/requests/{request_id}")
    theirs = other.get_by_role("heading", level=1).inner_text()
    other.goto(f"/console/{other_id}/requests/req_none")
    assert theirs == other.get_by_role("heading", level=1).inner_text()
    answer = other.goto(f"/console/{partner_id}/requests/{request_id}")
    assert answer.status == 403


def test_bad_filters_are_refused(developer):
    """400 with the parameter's name."""
    page, partner_id, _ = developer
    long = "code=" + "x" * 300
    for query in ("before=x", "before=1", "before=9e9.req_1", "class=3", long, "until=x"):
        answer = page.goto(f"/console/{partner_id}/requests?{query}")
        assert answer.status == 400, query
        expect(page.get_by_text(query.partition("=")[0], exact=True)).to_be_visible()


def test_usage_is_a_picture_and_a_table(site, developer):
    """Both modes count against one limit; the table has the same figures."""
    page, partner_id, keys = developer
    for mode in ("live", "test", "test"):
        site.api(keys[mode], "GET", "/claims?entity_id=e")
    entity_id = fixtures(site, partner_id).connected_entity_id
    last = site.api(keys["test"], "GET", f"/claims?entity_id={entity_id}")
    site.logged(last.headers["x-request-id"])
    total = page.locator(".figures dd").first
    path = f"/console/{partner_id}/usage?span=hour"
    until(lambda: page.goto(path) and total.inner_text() == "4", look=0.2)
    assert page.locator("rect.test").count() == 1
    assert page.locator("rect.refused").count() >= 1
    expect(page.get_by_role("img", name="4 calls: 3 errors")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="GET /v1/claims")).to_contain_text("75.0 %")
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        picture = page.locator("svg.chart").bounding_box()
        limit = page.locator("svg.chart .limit-name").bounding_box()
        assert picture["height"] > 150
        assert limit["x"] + limit["width"] < picture["x"], "the number is over the bars"
        assert limit["x"] >= 0
    page.get_by_text("Show as a table").click()
    expect(page.get_by_role("region", name="Show as a table")).to_be_visible()


def test_links_and_onboardings_show_what_became_of_them(site, developer):
    """No live entity id is shown before its customer has approved."""
    page, partner_id, keys = developer
    links = [
        site.api(keys["live"], "POST", "/connect-requests", json={"partner_user_id": user})
        .json()["connect_url"]
        .rpartition("/")[2]
        for user in ("redeems", "declines", PAYLOAD)
    ]
    entity_id = site.entity(site.mailbox())

    async def settle(service):
        connections = service.modes["live"].connections
        await connections.approve(links[0], entity_id, STAFF)
        await connections.decline(links[1], STAFF)

    site.do(settle)
    page.goto(f"/console/{partner_id}/links")
    expect(page.get_by_role("row").nth(1)).to_contain_text("issued")
    expect(page.get_by_role("row").nth(1)).to_contain_text(PAYLOAD)
    expect(page.get_by_role("row").nth(2)).to_contain_text("declined")
    expect(page.get_by_role("row").nth(3)).to_contain_text("redeemed")
    assert entity_id not in page.content()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": site.mailbox()}
    site.api(keys["live"], "POST", "/onboardings", json=body)
    page.goto(f"/console/{partner_id}/onboardings")
    expect(page.get_by_role("row").nth(1)).to_contain_text("started")
    assert "ent_" not in page.content()
    made = site.api(keys["test"], "POST", "/onboardings", json=body | {"partner_user_id": PAYLOAD})
    assert made.status_code == 201
    page.get_by_role("link", name="Test", exact=True).click()
    expect(page.get_by_role("row").nth(1)).to_contain_text(PAYLOAD)
    expect(page.get_by_role("row").nth(1)).to_contain_text("ent_")
    assert "Ledger Books" not in page.title()


def test_claims_of_all_entities_are_paged(site, developer):
    """Newest first, without repetition; a script in a reference stays text."""
    page, partner_id, keys = developer
    first = fixtures(site, partner_id).connected_entity_id
    body = {"partner_user_id": "u", "company_name": "New", "user_email": "n@example.com"}
    assert site.api(keys["test"], "POST", "/onboardings", json=body).status_code == 201
    page.goto(f"/console/{partner_id}/sandbox")
    second = page.get_by_role("row").filter(has_text="u").last.locator("code").first.inner_text()
    made = [
        site.api(keys["test"], "POST", "/claims", json=claim_body(entity, reference)).json()
        for number in range(26)
        for entity, reference in ((first, f"{PAYLOAD}{number}"), (second, f"second-{number}"))
    ]
    page.goto(f"/console/{partner_id}/claims?mode=test")
    found = page.locator("tbody tr th").all_inner_texts()
    expect(page.get_by_text(f"{PAYLOAD}25", exact=True)).to_be_visible()
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("link", name="Back to the newest")).to_be_visible()
    found += page.locator("tbody tr th").all_inner_texts()
    assert found == [claim["claim_id"] for claim in reversed(made)]
    page.get_by_role("link", name="Back to the newest").click()
    expect(page.get_by_text(f"{PAYLOAD}25", exact=True)).to_be_visible()
    answer = page.goto(f"/console/{partner_id}/claims?mode=live&after={found[0]}")
    assert answer.status == 400
