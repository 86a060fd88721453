"""The reference page is complete and loads nothing from other hosts."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from service.connections.wire import ConnectRequest
from service.core.errors import ERRORS, Refusal
from service.facts.claims import STAGES
from service.http.bodies import BODY_BYTES_MAX
from service.http.decoding import decode
from service.http.scalars import LIMITS
from service.http.static import PAGE_HEADERS
from service.partner_api.docs.guide import guide
from service.partner_api.docs.openapi import document
from service.partner_api.docs.page import render_page
from service.partner_api.gate import API_PATH
from service.sandbox.triggers import TRIGGERS
from tests.conformance import DESCRIBED, described
from tests.endpoints import ENDPOINTS
from tests.tables import every_row
from tests.world import PUBLIC_URL, World

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class Seen(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Record a tag."""
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "action"}:
                self.links.append(value or "")

    def handle_data(self, data):
        """Record text."""
        self.text += data


@pytest.fixture(scope="module")
def page() -> Seen:
    """Return the parsed page."""
    text = guide(DESCRIBED, 120)
    described = document(DESCRIBED, f"{PUBLIC_URL}{API_PATH}", text)
    return Seen(
        render_page(
            DESCRIBED,
            described,
            text,
            style="/style.css",
            script="/script.js",
            openapi="/openapi.json",
            postman="/postman.json",
        )
    )


def test_every_error_has_its_anchor(page: Seen):
    """The Link header of an error leads to its row."""
    with every_row() as row:
        for code in ERRORS:
            with row(code):
                assert page.ids.count(f"error-{code}") == 1
                assert ERRORS[code].message.split("`")[0] in page.text


def test_every_endpoint_has_a_section(page: Seen):
    """Each has a section, and a command to paste."""
    text = page.text.replace(f"curl -s {PUBLIC_URL}", f"curl -s '{PUBLIC_URL}")
    with every_row() as row:
        for endpoint in DESCRIBED:
            with row(endpoint.id):
                assert page.ids.count(endpoint.id) == 1
                assert endpoint.summary in page.text
                assert f"curl -s '{PUBLIC_URL}{ENDPOINTS[endpoint.id].url}" in text


def test_every_field_limit_is_listed(page: Seen):
    """Lengths and counts are in the table of limits."""
    for name, limit in LIMITS.items():
        line = rf"^{limit:,} (characters|entries)$"
        assert re.search(line, page.text, re.MULTILINE), name


def test_rate_and_body_limits_are_listed(page: Seen):
    """The rate limit and the size of a body."""
    assert "120 a minute" in page.text
    assert f"{BODY_BYTES_MAX:,} bytes" in page.text


def test_every_stage_is_listed(page: Seen):
    """Partners can read which stages exist."""
    assert [stage for stage in STAGES if stage not in page.text] == []


def test_every_trigger_is_listed(page: Seen):
    """Partners can read how to provoke an error in the sandbox."""
    codes = {code for codes in TRIGGERS.values() for code in codes}
    assert [code for code in codes if f"trigger_{code}" not in page.text] == []


def test_every_status_that_clients_retry_is_named():
    """In the guide, on the partners' page and by the client alike, those of proxies among them."""
    page = Path("docs/partners/errors.md").read_text()
    readme = Path("clients/python/README.md").read_text()
    (row,) = re.findall(r"^\| ([\d, ]+) \| yes", page, re.MULTILINE)
    (sentence,) = re.findall(r"^Retry ([\d, ]+) and 409 `", guide(DESCRIBED, 120), re.MULTILINE)
    (client,) = re.findall(r"\(`x-retry`\): ([\d, ]+)\sand\s`claim_conflict`", readme)
    listed = ", ".join(map(str, described()["x-retry"]["statuses"]))
    assert (row, sentence, client) == (listed, listed, listed)


def test_the_guide_says_which_strings_may_hold_a_nul():
    """Those of unknown fields, which are ignored whatever they hold; every other is refused."""
    sent = {"partner_user_id": "u", "unknown": "a\0b"}
    for kept, outcome in (({}, "decoded"), ({"label": "a\0b"}, "validation_failed")):
        try:
            decode(json.dumps(sent | kept).encode(), "application/json", ConnectRequest)
            found = "decoded"
        except Refusal as refusal:
            found = refusal.code
        assert found == outcome
    assert "a NUL in any string of a known field" in guide(DESCRIBED, 120)


def test_a_key_is_called_a_secret(page: Seen):
    """`pk_` suggests the opposite, so the page says it explicitly."""
    assert "Your API key is a secret, although it begins with pk_." in page.text


def test_links_within_the_page_resolve(page: Seen):
    """Every fragment has an element, and ids are unique."""
    assert sorted(page.ids) == sorted(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_the_page_loads_nothing_from_other_hosts(page: Seen):
    """No inline style or script, and every address is on this host."""
    assert page.tags.isdisjoint({"style", "iframe", "img", "base"})
    assert "style" not in page.attributes
    assert [link for link in page.links if not re.match(r"#|/[a-z]", link)] == []


async def test_assets_load(world: World):
    """The page and its assets are served with the strict headers."""
    answer = await world.client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    links = [link for link in Seen(answer.text).links if link.startswith("/")]
    assert [link for link in links if link.startswith("/docs/assets/")] != []
    for link in ["/docs", *links]:
        one = await world.client.get(link)
        assert one.status_code == 200, link
        expected = PAGE_HEADERS | ({"Content-Security-Policy": POLICY} if link == "/docs" else {})
        assert {name: one.headers.get(name) for name in PAGE_HEADERS} == expected
    assert answer.headers["content-security-policy"] == POLICY


async def test_the_style_sheet_loads_nothing(world: World):
    """It refers to nothing outside itself."""
    style = await world.client.get("/docs/assets/reference.css")
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert "url(" not in style.text
    assert "@import" not in style.text


@pytest.mark.parametrize("path", ["/docs", "/docs/postman.json", f"{API_PATH}/openapi.json"])
async def test_head_answers_headers_only(world: World, path: str):
    """HEAD has no body."""
    answer = await world.client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


async def test_an_error_links_to_the_page(world: World):
    """The Link header names the error's place on the page."""
    answer = await world.client.get(f"{API_PATH}/claims")
    assert answer.headers["link"] == f'<{PUBLIC_URL}/docs#error-auth_missing>; rel="help"'


async def test_the_collection_asks_this_service(world: World):
    """Postman can import it from here: a request for each operation, and the upload's."""
    answer = await world.client.get("/docs/postman.json")
    made = answer.json()
    requests = [item["request"] for folder in made["item"] for item in folder["item"]]
    (upload,) = (one for one in requests if one["method"] == "PUT")
    base_url = next(one["value"] for one in made["variable"] if one["key"] == "base_url")
    assert base_url == f"{PUBLIC_URL}{API_PATH}"
    assert len(requests) == len(DESCRIBED) + 1
    assert upload["auth"] == {"type": "noauth"}
