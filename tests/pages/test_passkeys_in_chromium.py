"""Passkeys in a real browser, with the authenticator that its developer protocol simulates."""

from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page, expect

from tests.pages.pressing import press_twice
from tests.world import STAFF

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@dataclass(frozen=True)
class Device:
    """The authenticator of a page's browser, by its developer protocol."""

    protocol: CDPSession
    authenticator_id: str

    @classmethod
    def of(cls, page: Page) -> "Device":
        """Give a page an authenticator without passkeys."""
        protocol = page.context.new_cdp_session(page)
        protocol.send("WebAuthn.enable")
        added = protocol.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        return cls(protocol, added["authenticatorId"])

    def passkeys(self) -> int:
        """Return how many passkeys it holds."""
        mine = {"authenticatorId": self.authenticator_id}
        return len(self.protocol.send("WebAuthn.getCredentials", mine)["credentials"])

    def recognise_nobody(self) -> None:
        """Let it verify nobody from now on."""
        known = {"authenticatorId": self.authenticator_id, "isUserVerified": False}
        self.protocol.send("WebAuthn.setUserVerified", known)


def of_staff(site) -> tuple[str, Page, Device]:
    """Return a new member of the team, in a browser that shows them "Add a passkey"."""
    email, page = site.mailbox(), site.visitor()
    site.keep_apart(page)
    site.do(lambda service: service.staff.add(email, STAFF))
    device = Device.of(page)
    site.sign_in(page, email, "/backoffice", by_passkey=False)
    return email, page, device


def use_passkey(site, page: Page, email: str) -> None:
    """Sign in by a link and use the passkey for a page of the back office."""
    site.sign_in(page, email, "/backoffice/partners", by_passkey=False)
    page.get_by_role("button", name="Use passkey").click()
    page.wait_for_url("/backoffice/partners")


def test_staff_add_a_passkey_and_use_it(site):
    """The first visit adds one, the next asks for it; without it, or a script, the page says so."""
    email, page, device = of_staff(site)
    page.get_by_role("button", name="Add passkey").click()
    page.wait_for_url("/backoffice")
    use_passkey(site, page, email)
    device.recognise_nobody()
    site.sign_in(page, email, "/backoffice", by_passkey=False)
    page.get_by_role("button", name="Use passkey").click()
    expect(page.get_by_text("Your browser didn't provide a passkey")).to_be_visible()
    _says_what_is_needed(site.visitor(java_script_enabled=False), site, email)


def test_a_browser_without_a_way_to_submit_sends_the_answer(site):
    """Safari before 16: it made the passkey, and the page said that it had made none."""
    email, page, device = of_staff(site)
    page.evaluate("delete HTMLFormElement.prototype.requestSubmit")
    page.get_by_role("button", name="Add passkey").click()
    page.wait_for_url("/backoffice")
    assert device.passkeys() == 1
    use_passkey(site, page, email)


def test_a_device_that_has_a_passkey_already_is_told_apart(site):
    """Where it gets no second one, the page says so, not that the browser gave none."""
    email, page, device = of_staff(site)
    page.get_by_role("button", name="Add passkey").click()
    page.wait_for_url("/backoffice")
    page.goto("/security/passkey")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_text("already has one of your passkeys")).to_be_visible()
    expect(page.get_by_text("Your browser didn't provide a passkey")).to_be_hidden()
    assert device.passkeys() == 1
    use_passkey(site, page, email)


def test_a_page_from_before_a_passkey_was_added_takes_it_from_nobody(site):
    """Another tab, for instance: it is refused, and the device keeps the one that counts."""
    email, page, _ = of_staff(site)
    form = page.locator("form[data-passkey]")
    earlier = form.evaluate("one => [one.dataset.options, one.elements.challenge.value]")
    page.get_by_role("button", name="Add passkey").click()
    page.wait_for_url("/backoffice")
    page.goto("/security/passkey")
    form.evaluate(
        """(one, [options, challenge]) => {
            one.dataset.options = options;
            one.elements.challenge.value = challenge;
        }""",
        earlier,
    )
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", name="This passkey was not accepted")).to_be_visible()
    use_passkey(site, page, email)


def test_a_second_press_makes_no_second_passkey(site):
    """While the answer to the first is on its way; the page leads on as after one press."""
    email, page, device = of_staff(site)
    posts = []
    page.on("request", lambda one: posts.append(one.url) if one.method == "POST" else None)
    press_twice(page, page.get_by_role("button", name="Add passkey"))
    page.wait_for_url("/backoffice")
    assert (len(posts), device.passkeys()) == (1, 1)
    page.unroute("**")
    use_passkey(site, page, email)


def _says_what_is_needed(page: Page, site, email: str) -> None:
    site.sign_in(page, email, "/backoffice", by_passkey=False)
    expect(page.get_by_text("Passkeys need JavaScript")).to_be_visible()
    assert page.get_by_role("button", name="Use passkey").count() == 0
