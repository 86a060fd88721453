"""Every page is checked against its declaration: access, headers, HTML, forms."""

import re
from itertools import product
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from litestar.routes import HTTPRoute

from service.pages.console.frame import ACCOUNT, ACTIVITY, CONSOLE, START
from service.pages.visit import CSRF_FIELD, HEADERS, QUERY_BYTES_MAX
from tests.pages.markup import faults_of
from tests.pages.people import People
from tests.pages.visitor import FROM_OUR_PAGE, Visitor, site_map_of
from tests.tables import every_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNSEEN = ("%0d%0aX", "%e2%80%ae", "%ff", "%ed%a0%80", "%00", "%20", "%7F", "%C3%A9", "x" * 600)
"""In addresses that nothing of ours has."""
GUARDED = {"member": "not_member", "approved": "not_member", "staff": "not_staff"}
FIXED = {
    *(
        f"/assets/{name}"
        for name in ("pages.css", "pages.js", "passkeys.js", "htmx.min.js", "icon.svg")
    ),
    *(
        "/favicon.svg",
        "/favicon.ico",
        "/docs",
        "/docs/assets/reference.css",
        "/docs/assets/reference.js",
        "/docs/postman.json",
        "/v1/openapi.json",
    ),
    *("/health/live", "/health/ready"),
}
"""What is no page: the same for everybody, or for operators."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def people(shared) -> People:
    """Return everybody involved."""
    everybody = People(shared)
    await everybody.prepare()
    return everybody


async def test_the_site_map_has_every_page(shared):
    """Each routed page is in it once, and every other route is a known exception."""
    pages = site_map_of(shared.service).pages
    expected: dict[tuple[str, str], str] = {}
    others: set[str] = set()
    for route in shared.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            for method in handler.http_methods - {"OPTIONS", "HEAD"}:
                if "page" in handler.opt:
                    expected[method, route.path] = handler.opt["page"].who
                elif "endpoint" not in handler.opt:
                    others.add(route.path)
    assert {(page.method, page.path): page.who for page in pages} == expected
    assert len(pages) == len(expected) > 60
    assert others == FIXED
    assert [page for page in pages if not page.purpose.endswith(".")] == []
    # A place of the console without a group would stand outside its three menus.
    console = {page.group for page in pages if page.place and page.path.startswith(CONSOLE)}
    assert console == {START, ACTIVITY, ACCOUNT}


async def test_strangers_are_led_to_sign_in_and_back(people):
    """Protected pages redirect to /sign-in, which remembers the page.

    From a form that is the page on which it stands.
    """
    for one in people.pages:
        if one.who in {"public", "token"}:
            continue
        url = people.url(one)
        stranger = Visitor(people.world)
        answer = await (stranger.get(url) if one.method == "GET" else stranger.post(url))
        where = urlsplit(answer.headers.get("location", ""))
        assert (answer.status_code, where.path) == (303, "/sign-in"), one
        following = url if one.method == "GET" else people.site_map.page_of_form(url)
        assert parse_qs(where.query) == {"next": [following]}, one


async def test_a_query_survives_signing_in(people):
    """The redirect keeps the requested page of a list."""
    answer = await Visitor(people.world).get("/account/a/b?from=clm_1&x=2")
    assert answer.headers["location"] == "/sign-in?next=/account/a/b%3Ffrom%3Dclm_1%26x%3D2"


async def test_outsiders_are_refused(people):
    """A signed-in person who is neither a member nor staff gets 403."""
    outsider = await Visitor(people.world).sign_in("outsider@example.com")
    for one in people.pages:
        if one.who not in GUARDED:
            continue
        url = people.url(one)
        answer = await (outsider.get(url) if one.method == "GET" else outsider.post(url))
        assert answer.status_code == 403, one
        assert f"<code>{GUARDED[one.who]}</code>" in answer.text, one
        assert not faults_of(answer.text, CSRF_FIELD, signed_in=True), one


async def test_each_page_is_well_formed_for_its_audience(people):
    """It has the headers of all pages, and HEAD agrees."""
    for one in people.pages:
        if one.method != "GET":
            continue
        visitor, url = await people.rightful(one), people.url(one)
        answer = await visitor.get(url)
        assert answer.status_code in {200, 303, 400, 404}, (one, answer.text)
        assert "/sign-in" not in answer.headers.get("location", ""), one
        if one.who != "token" and not re.search("request_id|link_id", one.path):
            assert answer.status_code in {200, 303}, (one, answer.text)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS, one
        if answer.status_code != 303 and "csv" not in one.path:
            signed_in = visitor.session is not None
            assert not faults_of(answer.text, CSRF_FIELD, signed_in=signed_in), one
        head = await visitor.client.head(url)
        assert (head.status_code, head.content) == (answer.status_code, b""), one
        assert head.headers.get("location") == answer.headers.get("location"), one


async def test_posts_of_other_sites_are_refused(people):
    """Without Fetch Metadata or our Origin no post is accepted from anybody."""
    foreign: list[dict[str, str]] = [
        {},
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
    ]
    for one in people.posts:
        visitor = await people.rightful(one)
        for headers in foreign:
            form = {CSRF_FIELD: visitor.csrf}
            answer = await visitor.client.post(people.url(one), data=form, headers=headers)
            assert answer.status_code == 403, (one, headers)
            assert "<code>cross_site_request</code>" in answer.text, (one, headers)


async def test_posts_without_the_session_s_token_are_refused(people):
    """A form without its token does nothing, whatever its apparent origin, but to sign out."""
    for one in people.posts:
        if one.path == "/sign-out":  # pages of an earlier session do so, too (test_session_changed)
            continue
        visitor = await people.rightful(one)
        if visitor.session is None:
            visitor = await people.signed_in("customer")
        forms: tuple[dict[str, str], ...] = ({}, {CSRF_FIELD: ""}, {CSRF_FIELD: "guess"})
        for form in forms:
            answer = await visitor.client.post(people.url(one), data=form, headers=FROM_OUR_PAGE)
            if one.path == "/sign-in/{token:str}":  # its own page says whether it still works
                assert answer.status_code == 303, form
                assert answer.headers["location"] == people.url(one)
                continue
            assert answer.status_code == 409, (one, form)
            assert "<code>session_changed</code>" in answer.text, (one, form)


async def test_addresses_that_nothing_has_are_not_found(people):
    """Line ends, marks that reorder text, bytes that are no text, NUL, what is too long: 404.

    In every parameter of every path, for whoever may see the page.
    """
    with every_row() as row:
        for one in people.pages:
            visitor = await people.rightful(one)
            for parameter, unseen in product(re.findall(r"\{\w+:str\}", one.path), UNSEEN):
                url = people.url(one._replace(path=one.path.replace(parameter, unseen)))
                with row(one.method, url):
                    answer = await (visitor.get(url) if one.method == "GET" else visitor.post(url))
                    assert answer.status_code == 404
                    assert "not_found" in answer.text


async def test_queries_are_read_whatever_they_hold(people):
    """No query makes a page fail, and none that is too long is read at all."""
    names = ("next", "mode", "state", "after", "before", "from", "until", "class", "partner_id")
    with every_row() as row:
        for one in people.pages:
            if one.method != "GET":
                continue
            visitor, url = await people.rightful(one), people.url(one)
            for value in ("%ff", "%0d%0aX", "\u202e", "x" * 999):
                query = "&".join(f"{name}={value}" for name in names)
                with row(url, value):
                    answer = await visitor.get(f"{url}?{query}")
                    assert answer.status_code < 500
                    assert len(query) <= QUERY_BYTES_MAX or answer.status_code == 404


async def test_other_methods_are_refused(people):
    """No page supports PUT, PATCH or DELETE."""
    visitor = Visitor(people.world)
    for path in {people.url(one) for one in people.pages}:
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = await visitor.client.request(method, path, headers=FROM_OUR_PAGE)
            assert answer.status_code == 405, (method, path)
            methods = set(answer.headers["allow"].split(", "))
            assert methods <= {"GET", "HEAD", "POST"}, path


async def test_an_unknown_path_is_a_page_or_an_envelope(shared):
    """A browser gets a page with the headers of all pages, a program the envelope."""
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for method, path, status in (("GET", "/conect/x", 404), ("POST", "/health/live", 405)):
        shown = await shared.client.request(method, path, headers=browser)
        assert shown.status_code == status
        assert {name: shown.headers[name] for name in HEADERS} == HEADERS
        assert not faults_of(shown.text, CSRF_FIELD, signed_in=False)
        told = await shared.client.request(method, path)
        assert (told.status_code, told.json()["code"] in shown.text) == (status, True)
        assert told.headers.get("allow") == shown.headers.get("allow")
    for path in ("/v1", "/v1/conect"):
        assert (await shared.client.get(path, headers=browser)).json()["code"] == "not_found"


async def test_the_home_page_leads_on(shared):
    """It links to the account, the console and the reference."""
    visitor = Visitor(shared)
    home = (await visitor.get("/")).text
    for path, status in (("/account", 303), ("/console", 303), ("/docs", 200)):
        assert f'href="{path}"' in home
        assert (await visitor.get(path)).status_code == status


async def test_icons_are_served(shared):
    """The icon that pages name, and the one that browsers request by themselves."""
    for path in ("/favicon.svg", "/favicon.ico"):
        answer = await shared.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    home = await shared.client.get("/")
    (icon,) = re.findall(r'<link rel="icon" href="([^"]+)"', home.text)
    assert (await shared.client.get(icon)).content == answer.content
