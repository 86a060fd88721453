"""Keys in the developer console are issued, shown once, rolled and revoked."""

import re
import threading
import time
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.pages.developing import approved, developer, issue, issued
from tests.patience import until
from tests.world import STAFF

TOKEN = re.compile(r"pk_(?:live|test)_ptn_\w+\.key_\w+\.\w+")


def test_a_token_is_shown_once(site):
    """Reloading and going back do not show it, and a form sent twice issues one key."""
    page, partner_id = developer(site)
    token = issue(page, partner_id, "live")
    page.reload()
    again = page.get_by_text("This form was already sent")
    expect(again).to_contain_text(token.split(".")[1])
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
    """Calls with the old key all succeed until its end, and all fail afterwards."""
    partner_id = approved(site, site.mailbox())
    token = issued(site, partner_id)
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
        until(lambda: calls)
        new = site.do(
            lambda service: service.partners.roll_key(
                partner_id, key_id, timedelta(seconds=2), STAFF
            )
        ).token
        rows = site.do(lambda service: service.partner_list.keys(partner_id))
        ends_at = next(row["revoked_at"] for row in rows if row["revoked_at"]).timestamp()
        until(lambda: calls[-1][0] >= ends_at)
    finally:
        ended.set()
        thread.join()
    assert {code for _, after, code in calls if after < ends_at} == {"entity_not_found"}
    assert {code for before, _, code in calls if before >= ends_at} == {"auth_revoked"}
    assert site.api(new, "GET", "/claims?entity_id=ent_x").json()["code"] == "entity_not_found"


@pytest.mark.parametrize(
    ("choice", "code"),
    [("stops working now", "auth_revoked"), ("for 24 hours", "entity_not_found")],
)
def test_a_key_is_rolled_in_the_console(site, choice, code):
    """The new key works at once, the old one as long as chosen; repeating changes nothing."""
    page, partner_id = developer(site)
    old = issued(site, partner_id)
    page.goto(f"/console/{partner_id}/keys")
    page.get_by_role("link", name="Roll").click()
    page.get_by_label(choice).check()
    page.get_by_role("button", name="Roll the key").click()
    new = page.locator(".copyable code").inner_text()
    page.reload()
    expect(page.get_by_text("This form was already sent")).to_contain_text(new.split(".")[1])
    assert site.api(old, "GET", "/claims?entity_id=ent_x").json()["code"] == code
    assert site.api(new, "GET", "/claims?entity_id=ent_x").json()["code"] == "entity_not_found"
    assert len(site.do(lambda service: service.partner_list.keys(partner_id))) == 2


def test_a_key_is_revoked_and_shows_its_last_use(site):
    """The list shows its last use; after a confirmation the key is refused."""
    page, partner_id = developer(site)
    token = issued(site, partner_id)
    site.logged(site.api(token, "GET", "/claims?entity_id=ent_x").headers["x-request-id"])
    row = page.get_by_role("row").filter(has_text=token.split(".")[1])
    keys = f"/console/{partner_id}/keys"
    until(lambda: page.goto(keys) and "never" not in row.inner_text(), look=0.2)
    page.get_by_role("link", name="Revoke").click()
    assert site.api(token, "GET", "/claims?entity_id=ent_x").json()["code"] == "entity_not_found"
    page.get_by_role("button", name="Revoke the key").click()
    expect(row).to_contain_text("revoked")
    assert site.api(token, "GET", "/claims?entity_id=ent_x").json()["code"] == "auth_revoked"


def test_a_key_id_that_we_did_not_draw_is_refused(site):
    """A form cannot choose the id of its key."""
    page, partner_id = developer(site)
    page.goto(f"/console/{partner_id}/keys")
    csrf, proof = (
        page.locator(f"input[name={name}]").last.input_value() for name in ("csrf", "proof")
    )
    form = {"csrf": csrf, "mode": "live", "key_id": "key_mine", "proof": proof}
    headers = {"Sec-Fetch-Site": "same-origin"}
    answer = page.request.post(f"/console/{partner_id}/keys", form=form, headers=headers)
    assert (answer.status, "validation_failed" in answer.text()) == (400, True)
    assert site.do(lambda service: service.partner_list.keys(partner_id)) == []


def test_the_reference_borrows_a_test_key(site):
    """From the console of whoever is signed in, for an hour; the next one replaces it."""
    page = site.visitor()
    page.goto("/docs")
    place = page.locator("#create_claim")
    place.get_by_text("Try it with a test key").click()
    place.get_by_role("button", name="Make a test key").click()
    expect(place.get_by_role("link", name="Sign in to the console")).to_be_visible()
    email = site.mailbox()
    partner_id = approved(site, email)
    site.sign_in(page, email)
    tokens = []
    for status in ("201", "200"):
        page.goto("/docs")
        place.get_by_text("Try it with a test key").click()
        place.get_by_role("button", name="Make a test key").click()
        expect(place.get_by_role("status").first).to_contain_text("for an hour")
        tokens.append(place.get_by_label("Test key").input_value())
        place.get_by_label("Test key").fill(f" {tokens[-1]} ")  # as it may be pasted
        place.get_by_role("button", name="Send").click()
        expect(place.locator("output.answer")).to_contain_text(status)
    assert [token.split(".")[0] for token in tokens] == [f"pk_test_{partner_id}"] * 2
    first, second = (site.api(token, "GET", "/claims?entity_id=ent_x") for token in tokens)
    assert (first.json()["code"], second.json()["code"]) == ("auth_revoked", "entity_not_found")
    page.goto(f"/console/{partner_id}/keys")
    expect(page.get_by_text("API reference").first).to_be_visible()


def test_whoever_has_two_partners_is_asked_whose_key_the_reference_borrows(site):
    """Each choice says what it is."""
    page, email = site.visitor(), site.mailbox()
    approved(site, email)
    site.sign_in(page, email)
    other, _ = site.partner("Quiet Ledgers")
    site.do(lambda service: service.partners.add_member(other, email, STAFF))
    page.goto("/docs")
    place = page.locator("#create_claim")
    place.get_by_text("Try it with a test key").click()
    place.get_by_role("button", name="Make a test key").click()
    expect(place.get_by_role("status").first).to_contain_text("Whose key?")
    place.get_by_role("button", name="A test key of Quiet Ledgers").click()
    expect(place.get_by_role("status").first).to_contain_text("of Quiet Ledgers, for an hour")
    assert place.get_by_label("Test key").input_value().startswith(f"pk_test_{other}.")
