"""Passkeys in a real browser, with the authenticator that its developer protocol simulates."""

from playwright.sync_api import Page, expect

from tests.world import STAFF

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def test_staff_add_a_passkey_and_use_it(site):
    """The first visit adds one, the next asks for it; without it, or a script, the page says so."""
    email, page = site.mailbox(), site.visitor()
    site.do(lambda service: service.staff.add(email, STAFF))
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    options = {"options": AUTHENTICATOR}
    device = devices.send("WebAuthn.addVirtualAuthenticator", options)["authenticatorId"]
    site.sign_in(page, email, "/backoffice", by_passkey=False)
    page.get_by_role("button", name="Add passkey").click()
    page.wait_for_url("/backoffice")
    site.sign_in(page, email, "/backoffice/partners", by_passkey=False)
    page.get_by_role("button", name="Use passkey").click()
    page.wait_for_url("/backoffice/partners")
    devices.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    site.sign_in(page, email, "/backoffice", by_passkey=False)
    page.get_by_role("button", name="Use passkey").click()
    expect(page.get_by_text("Your browser didn't provide a passkey")).to_be_visible()
    _says_what_is_needed(site.visitor(java_script_enabled=False), site, email)


def _says_what_is_needed(page: Page, site, email: str) -> None:
    site.sign_in(page, email, "/backoffice", by_passkey=False)
    expect(page.get_by_text("Passkeys need JavaScript")).to_be_visible()
    assert page.get_by_role("button", name="Use passkey").count() == 0
