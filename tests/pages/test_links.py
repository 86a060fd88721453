"""Links and forms in a browser: opening uses nothing up, and other sites can do nothing."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect

from service.pages.visit import COOKIE, CSRF_FIELD, KNOWN_COOKIE
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS

FORGED = """<!doctype html><title>Evil</title>
<form id="forged" method="post" action="{target}">{fields}</form><p>Win a prize</p>"""
POST_BY_SCRIPT = """async ([target, body]) => {
  try {
    const answer = await fetch(target, {
      method: "POST", body, mode: "no-cors", credentials: "include",
      headers: {"Content-Type": "application/x-www-form-urlencoded"},
    });
    return answer.type;
  } catch (error) { return "refused"; }
}"""


@contextmanager
def evil_site(target: str, fields: str) -> Iterator[str]:
    """Serve a page of another site that posts one of our forms."""
    body = FORGED.format(target=target, fields=fields).encode()

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"  # not the site of localhost
        finally:
            server.shutdown()
            thread.join()


def connected_account(site):
    """Return a person connected to a partner: mailbox, entity, partner."""
    partner_id, key = site.partner()
    email = site.mailbox()
    entity_id = site.entity(email)
    link = asked(site, key)
    page = site.visitor()
    site.sign_in(page, email, link)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text(entity_id)).to_be_visible()
    return page, entity_id, partner_id


def asked(site, key):
    """Return a connect link."""
    body = {"partner_user_id": "u"}
    return site.api(key, "POST", "/connect-requests", json=body).json()["connect_url"]


def is_connected(site, entity_id, partner_id):
    """Return whether a connection exists."""

    async def look(service):
        return await service.modes["live"].connection_list.access(partner_id, entity_id)

    return site.do(look).connected


@pytest.mark.parametrize("samesite", ["Lax", "None"])
def test_a_form_of_another_site_is_refused(site, samesite):
    """Another site posts our form for a signed-in person, and nothing is disconnected.

    `None`: even if the cookie went along, which Chromium does not send with `Lax`.
    """
    page, entity_id, partner_id = connected_account(site)
    (cookie,) = page.context.cookies()
    page.context.add_cookies([{**cookie, "sameSite": samesite}])
    path = f"/account/{entity_id}/{partner_id}/disconnect"
    page.goto(path)
    token = page.locator(f"main input[name={CSRF_FIELD}]").get_attribute("value")
    fields = f'<input name="{CSRF_FIELD}" value="{token}">'
    with evil_site(site.url + path, fields) as evil:
        page.goto(evil)
        with page.expect_request(site.url + path) as forged, page.expect_navigation():
            page.evaluate("document.getElementById('forged').submit()")
        assert ("cookie" in forged.value.all_headers()) == (samesite == "None")
        expect(page.locator("main")).to_contain_text("cross_site_request")
        page.goto(evil)
        page.evaluate(POST_BY_SCRIPT, [site.url + path, f"{CSRF_FIELD}={token}"])
    assert is_connected(site, entity_id, partner_id)


def test_our_own_form_needs_its_token(site):
    """The form of our own page is refused without its token and works with it.

    Chromium says `Origin: null` of it, because our pages send no referrer.
    """
    page, entity_id, partner_id = connected_account(site)
    path = f"/account/{entity_id}/{partner_id}/disconnect"
    page.goto(path)
    page.evaluate(f"document.querySelector('main input[name={CSRF_FIELD}]').remove()")
    page.get_by_role("button", name="Disconnect").click()
    expect(page.locator("main")).to_contain_text("session_changed")
    assert is_connected(site, entity_id, partner_id)
    page.goto(path)
    with page.expect_request(lambda request: request.method == "POST") as posted:
        page.get_by_role("button", name="Disconnect").click()
    sent = posted.value.all_headers()
    assert (sent["origin"], sent["sec-fetch-site"]) == ("null", "same-origin")
    expect(page.get_by_text("You disconnected")).to_be_visible()


def test_nobody_can_frame_a_page(site):
    """A frame on another site shows nothing of ours."""
    page = site.visitor()
    with evil_site(site.url, "") as evil:
        page.goto(evil)
        page.evaluate(
            "url => new Promise(done => { const f = document.createElement('iframe');"
            " f.src = url; f.onload = done; document.body.append(f); })",
            f"{site.url}/sign-in",
        )
        (frame,) = page.main_frame.child_frames
        assert frame.get_by_label("Email address").count() == 0


def test_scanners_do_not_use_up_links(site):
    """GETs, HEADs and a browser that only looks leave all three kinds of link unused."""
    _, key = site.partner()
    email, referred = site.mailbox(), site.mailbox()
    entity_id = site.entity(email)
    body = {"partner_user_id": referred, "company_name": "New", "user_email": referred}
    site.api(key, "POST", "/onboardings", json=body)
    page = site.visitor()
    page.goto("/sign-in")
    page.get_by_label("Email address").fill(email)
    page.get_by_role("button", name="Send link").click()
    signs_in = site.mailed_link(email, "sign-in")
    onboards, connects = site.mailed_link(referred, "onboarding"), asked(site, key)
    scanner = site.visitor()
    with httpx.Client(timeout=PATIENCE_SECONDS, verify=NO_TLS) as client:
        for link in (signs_in, onboards, connects):
            for _ in range(50):
                assert client.get(link).status_code == 200
                assert client.head(link).status_code == 200
            scanner.goto(link)
            scanner.wait_for_load_state("networkidle")
    assert scanner.context.cookies() == []
    page.goto(signs_in)
    expect(page.get_by_text(email)).to_be_visible()
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("/account")
    page.goto(connects)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text(entity_id)).to_be_visible()
    page.goto(onboards)
    page.get_by_role("button", name="Finish").click()
    expect(page.locator(".copyable code")).to_contain_text("ent_")


def test_a_session_cookie_is_hidden_and_ends_with_sign_out(site):
    """Scripts cannot read the cookie; a copy is worthless after signing out."""
    page = site.visitor()
    site.sign_in_by_mail(page, site.mailbox())
    cookies = {one["name"]: one for one in page.context.cookies()}
    assert set(cookies) == {COOKIE, KNOWN_COOKIE}
    assert all(one["httpOnly"] and one["secure"] for one in cookies.values())
    assert page.evaluate("document.cookie") == ""
    thief = site.visitor()
    thief.context.add_cookies([cookies[COOKIE]])
    thief.goto("/account")
    assert urlsplit(thief.url).path == "/account"
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("/sign-in")
    assert [one["name"] for one in page.context.cookies()] == [KNOWN_COOKIE]
    thief.goto("/account")
    assert urlsplit(thief.url).path == "/sign-in"


def test_signing_out_everywhere(site):
    """One press ends the sessions in every browser."""
    email = site.mailbox()
    first, second = site.visitor(), site.visitor()
    for page in (first, second):
        site.sign_in(page, email, "/account")
        expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    first.get_by_role("button", name="Sign out everywhere").click()
    first.wait_for_url("/sign-in")
    second.reload()
    assert urlsplit(second.url).path == "/sign-in"
