"""Signing in over HTTP: links, codes, where they lead, and what is refused."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from service.core.errors import Refusal
from service.pages.shell import lead_to, safe_path
from service.pages.sign_in import BROWSER_COOKIE
from service.pages.visit import COOKIE
from service.people.sign_in import ASKED_MAX, COUNTED_WITHIN
from tests.pages.signing_in import (
    EMAIL,
    SENT,
    asked,
    code_shown,
    count,
    is_signed_in,
    set_cookies,
)
from tests.pages.visitor import FROM_OUR_PAGE, Visitor, site_map_of
from tests.world import STAFF

ELSEWHERE = [
    *(
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "///evil.example",
        "/.//evil.example",
    ),
    *("https://evil.example", "https:evil.example", "http:///evil.example", "evil.example"),
    *("javascript:alert(1)", "data:text/html,x", "/\t/evil.example", "/\n/evil.example"),
    *("\t//evil.example", " //evil.example", "/a\r\nSet-Cookie: x=y", "/\x7f", "/a\u2028b"),
    *("/\N{FULLWIDTH SOLIDUS}evil.example", "/\xe4", "/a//evil.example", "/..//evil.example"),
    *("", "?x", "#x", "/" + "x" * 600),
]


async def test_signing_in_leads_to_the_requested_page(world):
    """The confirmation page names the address."""
    visitor = Visitor(world)
    token = await asked(world, visitor, "/account/a/b?from=c")
    confirm = await visitor.get(f"/sign-in/{token}")
    assert f"<strong>{EMAIL}</strong>" in confirm.text
    assert 'name="code"' not in confirm.text
    answer = await visitor.post(f"/sign-in/{token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/account/a/b?from=c")
    (cookie,) = [one for one in set_cookies(answer) if one.startswith(f"{COOKIE}=")]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert attributes == {"httponly", "secure", "path=/", "samesite=lax", "max-age=43200"}
    assert await is_signed_in(visitor)
    again = await Visitor(world).post(f"/sign-in/{token}")
    assert (again.status_code, "sign_in_link_used" in again.text) == (409, True)
    assert "Request a new link" in again.text
    here = await visitor.get(f"/sign-in/{token}")
    assert (here.status_code, "sign_in_link_used" in here.text) == (409, True)
    assert f"You are signed in as <strong>{EMAIL}</strong>" in here.text
    assert "Request a new link" not in here.text


async def test_another_browser_needs_the_code_and_is_led_home(world):
    """Whoever asks for an address's link, and sends it on, signs nobody in and leads nobody on.

    The code is shown in the browser that asked. A wrong one uses nothing up.
    """
    asking, other = Visitor(world), Visitor(world, "192.0.2.2")
    token = await asked(world, asking, "/connect/declined")
    code = await code_shown(asking)
    confirm = await other.get(f"/sign-in/{token}")
    assert (confirm.status_code, 'name="code"' in confirm.text) == (200, True)
    assert code not in confirm.text
    for wrong in ("", "BCDF-GHJK", code[:-1], f"{code}B", "\u00e9" * 64, "x" * 5000):
        answer = await other.post(f"/sign-in/{token}", code=wrong)
        assert (answer.status_code, 'id="code-fault"' in answer.text) == (400, True), wrong
        assert "not the code that your other browser shows" in answer.text
    assert await count(world, "sessions") == 0
    answer = await other.post(f"/sign-in/{token}", code=code.lower().replace("-", " "))
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert (await is_signed_in(other), await is_signed_in(asking)) == (True, False)


async def test_a_browser_keeps_its_code_and_no_other_has_it(world):
    """The earlier of two mails works in it, too; what is no token of ours is replaced."""
    visitor, other = Visitor(world), Visitor(world, "192.0.2.2")
    first = await asked(world, visitor)
    code = await code_shown(visitor)
    await asked(world, visitor)
    await asked(world, other)
    assert await code_shown(visitor) == code != await code_shown(other)
    assert (await visitor.post(f"/sign-in/{first}")).status_code == 303
    assert BROWSER_COOKIE not in visitor.client.cookies
    assert "<code>" not in (await visitor.get(SENT)).text
    other.client.cookies.clear()
    other.client.headers["Cookie"] = f"{BROWSER_COOKIE}=planted"
    answer = await other.post("/sign-in", email=EMAIL, next="")
    assert "planted" not in answer.headers["set-cookie"]


async def test_next_accepts_our_paths_only(world):
    """Other values are dropped, in the form and in the link."""
    for number, path in enumerate(ELSEWHERE):
        visitor = Visitor(world, f"192.0.2.{number}")
        page = await visitor.get("/sign-in", params={"next": path})
        assert 'name="next" value=""' in page.text, path
        token = await asked(world, visitor, path, f"p{number}@example.com")
        answer = await visitor.post(f"/sign-in/{token}")
        assert answer.headers["location"] == "/account", path


async def test_a_form_leads_back_to_its_page(world):
    """The nearest path that answers GET."""
    site_map = site_map_of(world.service)
    for form, page in (
        ("/account/ent_a/ptn_b/disconnect", "/account/ent_a/ptn_b/disconnect"),
        ("/account/sign-out", "/account"),
        ("/backoffice/claims/clm_a/stage", "/backoffice/claims/clm_a"),
        ("/backoffice/partners/ptn_a/approve", "/backoffice/partners/ptn_a"),
        ("/console/ptn_a/sandbox/entities/ent_b", "/console/ptn_a/sandbox"),
        ("/no/such/page", "/"),
    ):
        assert site_map.page_of_form(form) == page


@pytest.mark.parametrize(
    "path", ["/", "/account", "/connect/a_B-9", "/a?b=c&d=%2F%2Fe", "/%2f%2fx"]
)
def test_our_own_paths_stay(path):
    """Encoded slashes are not slashes to a browser, so such a path stays on this host."""
    assert safe_path(path, "/other") == path


def test_a_redirect_never_leads_to_what_a_header_cannot_hold():
    """Whatever chose the path: it is not found."""
    for path in ("/a\r\nSet-Cookie: x=y", "/\u202e", "/a b", "/\x7f", "", "//\t", "a"):
        with pytest.raises(Refusal, match="not_found"):
            lead_to(path)


@pytest.mark.parametrize(
    ("who", "home"),
    [
        ("staff", "/backoffice"),
        ("staff who is a member", "/backoffice"),
        ("member", "/console"),
        ("former staff", "/account"),
        ("customer", "/account"),
    ],
)
async def test_without_a_destination_everybody_lands_on_their_home(world, who, home):
    """The team, developers and customers each have their own."""
    service = world.service
    if "staff" in who:
        await service.staff.add(EMAIL, STAFF)
    if "former" in who:
        await service.staff.remove(EMAIL, STAFF)
    if "member" in who:
        partner_id = await service.partners.add("Books", "books@example.com", STAFF)
        await service.partners.add_member(partner_id, EMAIL, STAFF)
        await service.partners.approve(partner_id, STAFF)
    visitor = Visitor(world)
    token = await asked(world, visitor, "")
    assert (await visitor.post(f"/sign-in/{token}")).headers["location"] == home
    other = Visitor(world)
    token = await asked(world, other, "/connect/declined")
    answer = await other.post(f"/sign-in/{token}")
    assert answer.headers["location"] == "/connect/declined"


async def test_the_home_page_lists_the_persons_areas(world):
    """The back office is for the team; account and console are for everybody."""
    await world.service.staff.add("team@example.com", STAFF)
    visitors = [
        Visitor(world),
        await Visitor(world).sign_in(EMAIL),
        await Visitor(world).sign_in("team@example.com"),
    ]
    pages = [(await visitor.get("/")).text for visitor in visitors]
    assert ['href="/backoffice"' in page for page in pages] == [False, False, True]
    assert all('href="/account"' in page and 'href="/console"' in page for page in pages)
    nobody = (await visitors[1].get("/account")).text
    assert 'href="/console"' in nobody
    assert 'href="/sign-in"' in nobody  # with another address
    assert "Apply for a partner account" in (await visitors[1].get("/console")).text


async def test_a_form_of_a_session_that_ended_leads_back_to_its_page(world):
    """After signing in again the person is on the form's page."""
    stranger, visitor = Visitor(world), await Visitor(world).sign_in(EMAIL)
    for page in site_map_of(world.service).pages:
        if page.method != "POST" or page.who in {"public", "token"}:
            continue
        path = re.sub(r"\{[^}]*\}", "some_id", page.path)
        answer = await stranger.post(path)
        assert answer.status_code == 303, path
        place = urlsplit(answer.headers["location"])
        (following,) = parse_qs(place.query)["next"]
        led = (place.path, path.startswith(following), following != "/")
        assert led == ("/sign-in", True, True), path
        assert (await visitor.get(following)).status_code != 405, path


async def test_malformed_addresses_are_field_errors(world):
    """The form keeps its input; nothing is stored."""
    long = f"a{' ' * 9000}b@example.com"
    for email in ("", "nobody", "a b@example.com", "a@b@example.com", "a" * 300, long):
        answer = await Visitor(world).post("/sign-in", email=email, next="/account")
        assert answer.status_code == 400, email
        assert 'aria-invalid="true"' in answer.text
        assert f'value="{email}"' in answer.text
    assert await count(world, "sign_in_links") == 0


async def test_opening_a_sign_in_link_does_not_use_it(world):
    """After a hundred GETs and HEADs the person's POST still signs in."""
    visitor, scanner = Visitor(world), Visitor(world, "192.0.2.7")
    token = await asked(world, visitor)
    for _ in range(50):
        assert (await scanner.get(f"/sign-in/{token}")).status_code == 200
        assert (await scanner.client.head(f"/sign-in/{token}")).status_code == 200
    assert await count(world, "sessions") == 0
    assert (await visitor.post(f"/sign-in/{token}")).status_code == 303


NO_FORMS = [
    (b'{"email": "person@example.com"}', "application/json"),
    (b"email=person%40example.com", "text/plain"),
    (b"email=%ff%fe", "application/x-www-form-urlencoded"),
    (b"email=a%00b@example.com", "application/x-www-form-urlencoded"),
    ("email=ü@example.com".encode(), "application/x-www-form-urlencoded"),
    (b"a=b&" * 300, "application/x-www-form-urlencoded"),
]


async def test_malformed_forms_are_refused(world):
    """Other types, undecodable bytes, NUL or too many fields get a page that says so."""
    for content, kind in NO_FORMS:
        headers = FROM_OUR_PAGE | {"Content-Type": kind}
        answer = await Visitor(world).client.post("/sign-in", content=content, headers=headers)
        assert answer.status_code == 400, content
        assert "<code>validation_failed</code>" in answer.text, content


async def test_refusals_name_code_status_and_request(world):
    """Each refusal page can be reported to the team."""
    answer = await Visitor(world).get("/sign-in/unknown")
    detail = re.search(r'<p class="detail">(.*?)</p>', answer.text)
    assert detail
    for part in ("400", "sign_in_link_invalid", answer.headers["x-request-id"]):
        assert part in detail[1]


async def test_a_browser_that_keeps_no_cookies_is_told_so(world):
    """Where it would wait for the link, which would ask it for a code that it does not show."""
    visitor = Visitor(world)
    told = "without cookies you can't sign in"
    token = await asked(world, visitor)
    kept = await visitor.get(SENT)
    visitor.client.cookies.clear()
    forgotten, confirm = [(await visitor.get(one)).text for one in (SENT, f"/sign-in/{token}")]
    assert (told in kept.text, told in forgotten) == (False, True)
    assert "or in one that keeps no cookies" in confirm
    for page in (kept.text, confirm):  # where it was asked, the partner's link stays behind
        assert "open that link again" in page
    await visitor.sign_in(EMAIL)
    assert told not in (await visitor.get(SENT)).text


async def test_an_international_address_is_the_one_of_its_ascii_form(world):
    """By which a business is registered; letters with accents before the @ are refused in words."""
    visitor = Visitor(world)
    token = await asked(world, visitor, email="info@bücher.example")
    assert "info@xn--bcher-kva.example" in (await visitor.get(f"/sign-in/{token}")).text
    refused = await visitor.post("/sign-in", email="zoë@bücher.example")
    assert (refused.status_code, "without accents before the @" in refused.text) == (400, True)


async def test_whoever_asks_too_often_is_told_of_the_limit(world):
    """By the same words before and after it, which tell nothing of the address."""
    visitor, shown = Visitor(world), set[str]()
    for _ in range(ASKED_MAX + 1):
        await visitor.post("/sign-in", email="often@example.com")
        shown.add(re.sub("<code>.*</code>", "", (await visitor.get("/sign-in/sent")).text))
    (page,) = shown
    minutes = COUNTED_WITHIN // timedelta(minutes=1)
    assert f"at most {ASKED_MAX} links to an address in {minutes} minutes" in page
