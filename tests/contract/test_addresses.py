"""Hosts, paths and the headers of every answer, through the whole application."""

import re

import httpx
import pytest
import pytest_asyncio

from service.http.admission import IN_FLIGHT_MIN
from service.http.every_answer import every_answer
from tests.contract.refusals import refused
from tests.endpoints import ENDPOINTS
from tests.tables import every_row
from tests.world import PUBLIC_URL

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROWSER = {"Accept": "text/html"}
PATHS = ("/health/live", "/docs", "/v1/openapi.json", "/sign-in", "/assets/pages.css")
FOREIGN = ("evil.example", "203.0.113.7", "api.example.com:8443", "localhost")
CACHED = {
    "/docs": "no-cache",
    "/v1/openapi.json": "no-cache",
    "/assets/pages.css": "no-cache",
    "/favicon.ico": "public, max-age=86400",
}
"""What is the same for everybody, and may be kept."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def partner(shared):
    """Return the partner that sends these requests."""
    return await shared.partner()


def aliases(path: str) -> list[str]:
    """Return other ways to write a path."""
    last = path.rpartition("/")[2]
    encoded = f"{path.removesuffix(last)}%{ord(last[0]):02x}{last[1:]}"
    return [f"/{path}", f"{path}/", f"{path}//", encoded, encoded.upper().replace("/V1", "/v1")]


async def test_aliases_of_a_path_are_unknown(shared):
    """Whatever the method; below the API with its envelope, elsewhere as a page for browsers."""
    paths = {*PATHS, *(one.url for one in ENDPOINTS.values())}
    with every_row() as row:
        for alias in [alias for path in paths for alias in aliases(path)]:
            for method in ("GET", "POST", "OPTIONS"):
                with row(method, alias):
                    answer = await shared.client.request(method, f"{PUBLIC_URL}{alias}")
                    refused(answer, "not_found")
    page = await shared.client.get(f"{PUBLIC_URL}/sign-in/", headers=BROWSER)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    refused(await shared.client.get(f"{PUBLIC_URL}/v1/claims/", headers=BROWSER), "not_found")


async def test_metrics_are_not_public(shared):
    """Nor is the health in detail: both are the operations listener's."""
    for path in ("/metrics", "//metrics", "/%6detrics", "/metrics/", "/health"):
        refused(await shared.client.get(f"{PUBLIC_URL}{path}"), "not_found")


async def test_another_host_is_refused(shared, partner):
    """Before authentication; the answer names the host to use, and nobody is charged."""
    with every_row() as row:
        for host in FOREIGN:
            for path in ("/sign-in", "/v1/claims", "/nowhere", "/docs"):
                with row(host, path):
                    answer = await shared.client.get(path, headers={"Host": host} | BROWSER)
                    refused(answer, "host_unknown")
                    assert PUBLIC_URL in answer.text
            body = {"partner_user_id": "u"}
            asked = await partner.call(
                "POST", "/connect-requests", json=body, headers={"Host": host}
            )
            refused(asked, "host_unknown")
            assert "x-ratelimit-remaining" not in asked.headers


async def test_health_is_asked_for_by_address(shared):
    """As load balancers do; only in its one form."""
    for path in ("/health/live", "/health/ready"):
        for host in FOREIGN:
            answer = await shared.client.get(path, headers={"Host": host})
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        alias = await shared.client.get(f"{path}/", headers={"Host": "203.0.113.7"})
        refused(alias, "host_unknown")


async def test_every_answer_has_the_headers(shared, partner):
    """Successes, refusals of every layer, pages and files; only what is public may be kept."""
    client, everywhere = shared.client, every_answer(PUBLIC_URL)
    entity_id = await partner.connected_entity()
    listed = {"entity_id": entity_id}
    answers: list[httpx.Response] = [
        await partner.claim(entity_id),
        await partner.call("GET", "/claims", params=listed),
        await partner.call("POST", "/claims", content=b"{"),
        await client.get("/v1/claims"),
        await client.delete("/v1/claims"),
        await client.options("/v1/claims"),
        await client.get("/nowhere"),
        await client.get("/nowhere", headers=BROWSER),
        await client.get("/sign-in", headers={"Host": "evil.example"}),
        await client.get("/health/live"),
        await client.get("/health/ready"),
        await client.get("/sign-in"),
        await client.get("/account"),
        await client.post("/sign-in", headers={"Sec-Fetch-Site": "cross-site"}),
        *[await client.get(path) for path in CACHED],
    ]
    tag = answers[-1].headers["etag"]
    answers.append(await client.get("/favicon.ico", headers={"If-None-Match": tag}))
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 201, 303, 304, 400, 401, 403, 404, 405, 421}
    with every_row() as row:
        for answer in answers:
            path = answer.request.url.path
            with row(answer.status_code, path):
                expected = everywhere | {"Cache-Control": CACHED.get(path, "no-store")}
                assert {name: answer.headers.get(name) for name in expected} == expected
                assert "Access-Control-Allow-Origin" not in answer.headers


async def test_an_asset_of_another_release_is_not_kept(shared):
    """While releases run side by side, a browser asks one for what a page of the other names."""
    pages = [(await shared.client.get(path)).text for path in ("/sign-in", "/docs")]
    named = {one for page in pages for one in re.findall(r'"(/[^"]+\?v=[0-9a-f]{12})"', page)}
    assert {"/assets/pages.css", "/docs/assets/reference.js"} <= {one[:-15] for one in named}
    with every_row() as row:
        for address in sorted(named):
            with row(address):
                own = await shared.client.get(address)
                assert own.headers["cache-control"] == "public, max-age=31536000, immutable"
                for query in ("?v=000000000000", "?v=", "", f"{address[-15:]}&x"):
                    other = await shared.client.get(address[:-15] + query)
                    assert other.headers["cache-control"] == "no-cache"
                    assert other.headers["etag"] == own.headers["etag"]


@pytest.mark.in_process("takes every place of the process that answers")
async def test_an_early_refusal_has_the_headers(shared, partner, monkeypatch):
    """It is answered before anything else is looked at."""
    busy = shared.admitted.admission.reads
    with monkeypatch.context() as patch:
        patch.setattr(busy, "in_flight", IN_FLIGHT_MIN)
        patch.setattr(busy, "wait_seconds_max", 0.0)
        answer = await partner.call("GET", "/claims", params={"entity_id": "ent_none"})
    expected = every_answer(PUBLIC_URL)
    assert answer.status_code == 503
    assert {name: answer.headers.get(name) for name in expected} == expected
