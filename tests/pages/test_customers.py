"""Customers in a browser: approving, declining, finishing an onboarding, disconnecting."""

import re

from playwright.sync_api import expect

from tests.pages.pressing import press_twice
from tests.world import claim_body


def asked_link(site, key, **more):
    """Return the connect link that a partner receives."""
    body = {"partner_user_id": "u"} | more
    return site.api(key, "POST", "/connect-requests", json=body).json()["connect_url"]


def onboarding_link(site, key, email, **more):
    """Start an onboarding; return the link in its mail."""
    body = {"partner_user_id": email, "company_name": "Bakry", "user_email": email} | more
    assert site.api(key, "POST", "/onboardings", json=body).status_code == 201
    return site.mailed_link(email, "onboarding")


def test_a_customer_approves_and_ends_a_connection(site):
    """From the link to the entity id, a claim, and a 403 after disconnecting."""
    _, key = site.partner("Ledger Books")
    email = site.mailbox()
    entity_id = site.entity(email, "Bakery")
    page = site.visitor()
    page.goto(asked_link(site, key, label="for your bookkeeping"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Ledger Books")
    expect(page.get_by_text("for your bookkeeping")).to_be_visible()
    page.get_by_role("link", name="Sign in to respond").click()
    page.get_by_label("Email address").fill(email)
    page.get_by_role("button", name="Send link").click()
    page.goto(site.mailed_link(email, "sign-in"))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text(entity_id)).to_be_visible()
    assert site.api(key, "POST", "/claims", json=claim_body(entity_id)).status_code == 201
    page.goto("/account")
    page.get_by_role("link", name="Ledger Books", exact=True).click()
    expect(page.get_by_text("case-1")).to_be_visible()
    page.get_by_role("link", name="Disconnect").click()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("You disconnected Ledger Books")).to_be_visible()
    after = site.api(key, "POST", "/claims", json=claim_body(entity_id, "case-2"))
    assert (after.status_code, after.json()["code"]) == (403, "partner_disconnected")


def test_a_second_press_sends_nothing(site):
    """Signing in, approving and finishing lead to their results; none says that it was used."""
    _, key = site.partner()
    email = site.mailbox()
    entity_id = site.entity(email)
    page = site.visitor()
    site.keep_apart(page)
    page.goto("/sign-in")
    page.get_by_label("Email address").fill(email)
    press_twice(page, page.get_by_role("button", name="Send link"))
    page.wait_for_url("/sign-in/sent")
    page.goto(site.mailed_link(email, "sign-in"))
    press_twice(page, page.get_by_role("button", name="Sign in"))
    page.wait_for_url("/account")
    page.goto(asked_link(site, key))
    press_twice(page, page.get_by_role("button", name="Approve"))
    expect(page.locator(".copyable code")).to_have_text(entity_id)
    page.goto(onboarding_link(site, key, site.mailbox()))
    press_twice(page, page.get_by_role("button", name="Finish"))
    expect(page.locator(".copyable code")).to_contain_text("ent_")


def test_a_form_that_is_on_its_way_says_so(site):
    """It is announced, and kept from being sent again until its page is shown anew."""
    page = site.visitor()
    page.goto("/sign-in")
    send = "form => form.dispatchEvent(new Event('submit', {bubbles: true, cancelable: true}))"
    form, said = page.locator("form[action='/sign-in']"), page.locator("#said")
    assert form.evaluate(send)
    expect(said).to_have_text("Sending…")
    assert not form.evaluate(send)
    page.evaluate("dispatchEvent(new Event('pageshow'))")
    expect(said).to_have_text("")
    assert form.evaluate(send)


def test_a_customer_of_several_businesses_chooses(site):
    """The browser requires a choice, and the chosen business is connected."""
    _, key = site.partner()
    email = site.mailbox()
    site.entity(email, "Bakery")
    second = site.entity(email, "Brewery", another=True)
    page = site.visitor()
    site.sign_in(page, email, asked_link(site, key))
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("wants to act")
    page.get_by_label("Brewery").check()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".copyable code")).to_have_text(second)


def test_a_customer_declines(site):
    """No choice is needed; afterwards the link is void."""
    _, key = site.partner()
    email = site.mailbox()
    site.entity(email, "Bakery")
    site.entity(email, "Brewery", another=True)
    link = asked_link(site, key)
    page = site.visitor()
    site.sign_in(page, email, link)
    page.get_by_role("button", name="Decline").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You declined")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("You declined")
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("This link is not valid")


def test_a_referred_person_corrects_and_finishes(site):
    """The form has the partner's details; corrections are what is stored."""
    _, key = site.partner()
    address = {"first_line": "1 Example Street", "postcode": "AB1 2CD"}
    link = onboarding_link(site, key, site.mailbox(), company_number="123", address=address)
    page = site.visitor()
    page.goto(link)
    expect(page.get_by_label("Address line 1")).to_have_value("1 Example Street")
    page.get_by_label("Business name").fill("Bakery")
    page.get_by_role("button", name="Finish").click()
    entity_id = page.locator(".copyable code").inner_text()
    page.reload()
    expect(page.locator(".copyable code")).to_have_text(entity_id)
    listed = site.api(key, "GET", f"/claims?entity_id={entity_id}").json()
    assert listed["claims"] == []
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("You have already finished")


def test_the_entity_id_is_copied(site):
    """One press copies it to the clipboard, and the button says so."""
    email = site.mailbox()
    entity_id = site.entity(email)
    page = site.visitor(permissions=["clipboard-read", "clipboard-write"])
    site.sign_in(page, email, "/account")
    page.locator("summary", has_text="Entity ID").click()
    page.get_by_role("button", name=re.compile("Copy")).first.click()
    expect(page.get_by_role("button", name=re.compile("Copied")).first).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == entity_id


def test_everything_but_copying_works_without_scripts(site):
    """The id is readable, no dead button is shown, and approving works."""
    _, key = site.partner("Ledger Books")
    email = site.mailbox()
    entity_id = site.entity(email)
    page = site.visitor(java_script_enabled=False)
    site.sign_in(page, email, asked_link(site, key))
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text(entity_id)).to_be_visible()
    expect(page.locator("button[data-copy]")).to_be_hidden()
    page.goto("/account")
    page.get_by_role("link", name="Ledger Books", exact=True).click()
    page.get_by_role("link", name="Disconnect").click()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("You disconnected Ledger Books")).to_be_visible()


def test_scripts_in_names_stay_text(site):
    """Nothing from names runs, and the browser has nothing to block."""
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    _, key = site.partner(evil[:60])
    email = site.mailbox()
    site.entity(email, evil)
    page = site.visitor()
    site.keep_apart(page)
    heard: list[str] = []
    page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    site.sign_in(page, email, asked_link(site, key, label=evil))
    expect(page.get_by_text(evil).first).to_be_visible()
    page.goto("/account")
    expect(page.get_by_role("heading", name=evil)).to_be_visible()
    page.goto(onboarding_link(site, key, site.mailbox(), company_name=evil))
    expect(page.get_by_label("Business name")).to_have_value(evil)
    page.goto("/")
    assert heard == []
