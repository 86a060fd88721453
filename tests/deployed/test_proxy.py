"""`deploy/haproxy.cfg`, run by HAProxy before a server: what it limits, and what it answers."""

import json
import re
import shutil
import subprocess
from contextlib import ExitStack

import httpx
import pytest

from service.core.errors import Refusal
from tests.contract.refusals import refused
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, eventually
from tests.processes import free_port
from tests.serving import served
from tests.topology import HAPROXY, HOST, proxy
from tests.world import PUBLIC_URL

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed"),
]

REQUESTS_MAX = 20
CONNECTIONS_MAX = 8
LIMITS = {
    "REQUESTS_IN_10_SECONDS_MAX": str(REQUESTS_MAX),
    "CONNECTIONS_MAX": str(CONNECTIONS_MAX),
}
"""Small ones: whether a test reaches them must not depend on how fast the machine is."""


@pytest.fixture
def in_front(database_url, folder):
    """Return a proxy with small limits; the second of its servers is never there."""
    given = {"PUBLIC_URL": PUBLIC_URL, "TRUSTED_PROXIES": "127.0.0.1"}
    with (
        served(database_url, folder, **given) as server,
        proxy(folder, [server.port, free_port()], LIMITS) as one,
    ):
        yield one


async def test_too_many_requests_of_a_network_are_refused(in_front):
    """With the envelope of the service, and when to come back; others are answered as ever."""
    async with in_front.client("127.7.0.1") as client, in_front.client("127.8.0.1") as other:
        client.event_hooks, other.event_hooks = {}, {}  # the proxy's answers have no request id

        async def limited():
            answer = await client.get("/health/live")
            return answer if answer.status_code == 429 else None

        answer = await eventually(limited)
        refused(answer, "rate_limited")
        assert answer.headers["Retry-After"] == "10"
        assert answer.headers["Cache-Control"] == "no-store"
        assert (await other.get("/health/live")).status_code == 200


def test_a_network_holds_so_many_connections(in_front):
    """More are refused before TLS; a place that is given back is somebody's again."""
    with ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX):
            stack.enter_context(shaken(in_front))
        with pytest.raises(OSError):  # noqa: PT011 - a reset, or an end in mid-handshake
            shaken(in_front)
        shaken(in_front, "127.8.0.1").close()


def shaken(one, address="127.7.0.1"):
    """Return a connection to the proxy from an address, after the TLS handshake."""
    return one.connected(timeout=PATIENCE_SECONDS, source_address=(address, 0))


async def test_one_server_of_two_is_enough(in_front):
    """A request that meets the absent one goes to the other."""
    async with in_front.client() as client:
        for _ in range(REQUESTS_MAX // 2):
            assert (await client.get("/health/live")).status_code == 200


UNREAD = "HTTP/1.1 400 Bad request\r\nContent-length: 90\r\n"
"""How HAProxy up to 3.2.2 refuses what it cannot read: a text of its own, in no form of ours."""
EVERY_ANSWER = {
    "x-content-type-options": ["nosniff"],
    "cache-control": ["no-store"],
    "strict-transport-security": ["max-age=31536000; includeSubDomains"],
}


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /health/live HTTP/1.1", "200"),
        ("GET /< HTTP/1.1", "400"),
        ("GET / HTTP/1.1\r\n" + "\r\n".join(f"X-{n}: n" for n in range(98)), "431"),
        ("nothing that can be read", "400"),
    ],
)
def test_every_answer_has_the_headers_of_every_answer(in_front, head, status):
    """Those that the server makes before the application, and the proxy, have them as well."""
    with in_front.connected(timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(f"{head}\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        received = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    first, *lines = received.partition("\r\n\r\n")[0].split("\r\n")
    assert first.split()[1] == status
    if received.startswith(UNREAD):
        return
    found = [line.partition(": ")[::2] for line in lines]
    values = {
        name: [value for given, value in found if given.lower() == name] for name in EVERY_ANSWER
    }
    assert values == EVERY_ANSWER


async def test_what_the_application_set_stays(in_front):
    """Assets are kept by clients for good, whatever the proxy would say."""
    async with in_front.client() as client:
        page = await client.get("/sign-in")
        (path, *_) = re.findall(r'href="(/assets/[^"]+)"', page.text)
        asset = await client.get(path)
    assert "immutable" in asset.headers["Cache-Control"]
    assert asset.headers.get_list("X-Content-Type-Options") == ["nosniff"]


async def test_without_a_server_clients_are_told_to_come_back(database_url, folder):
    """503 in the form of the service's own."""
    with ExitStack() as running:
        server = running.enter_context(served(database_url, folder, PUBLIC_URL=PUBLIC_URL))
        with proxy(folder, [server.port, free_port()]) as one:
            running.close()
            async with one.client() as client:
                client.event_hooks = {}
                answer = await client.get("/health/live")
    refused(answer, "service_unavailable")
    assert answer.headers["Retry-After"] == "1"
    assert {name: answer.headers.get_list(name) for name in EVERY_ANSWER} == EVERY_ANSWER


async def test_what_no_server_logs_the_proxy_does(in_front):
    """Its own answers, by network; no path, which has links in it; and all of it is counted."""
    canary = "/sign-in/canary?token=canary"
    async with in_front.client("127.7.0.1") as client:
        client.event_hooks = {}
        assert (await client.get(canary)).status_code == 400

        async def limited():
            return (await client.get(canary)).status_code == 429

        await eventually(limited)
    lines = await eventually(lambda: re.findall(r".* network=.*", in_front.log.read_text()))
    assert {re.findall(r" network=(\S+) method=(\S+) status=(\S+) ", one)[0] for one in lines} == {
        ("127.7.0.1", "GET", "429")
    }
    assert "canary" not in in_front.log.read_text()
    url = f"http://127.0.0.1:{in_front.metrics_port}/metrics"
    async with httpx.AsyncClient(verify=NO_TLS, timeout=PATIENCE_SECONDS) as operator:
        text = (await operator.get(url)).text
    counted = 'haproxy_frontend_http_responses_total{proxy="public",code="4xx"}'
    assert f"{counted} 0\n" not in text
    assert counted in text
    assert 'haproxy_frontend_denied_connections_total{proxy="public"}' in text


CURL = shutil.which("curl")
POSTS = 60
BODY_BYTES = 20_000
"""More than HAProxy has in one buffer, and less than a client sends before it is answered."""


@pytest.mark.skipif(CURL is None, reason="curl is not installed")
@pytest.mark.parametrize("size", [7, BODY_BYTES])
def test_what_is_posted_over_http_2_is_answered(database_url, folder, size):
    """With the proxy's own refusals: an answer before the body has come would be a reset."""
    body, limits = folder / "body", LIMITS | {"CONNECTIONS_IN_10_SECONDS_MAX": "1000"}
    body.write_bytes(b"a" * size)
    with ExitStack() as running:
        server = running.enter_context(served(database_url, folder, PUBLIC_URL=PUBLIC_URL))
        with proxy(folder, [server.port, free_port()], limits) as one:
            running.close()
            answers = [posted_over_http_2(one, body) for _ in range(POSTS)]
    assert set(answers) <= {"503 0", "429 0"}
    assert answers[-1] == "429 0"


def posted_over_http_2(one, body):
    """Return the status of the answer, and how curl ended; each is a connection of its own."""
    command = ["-s", "-k", "--http2", "-o", "/dev/null", "-w", "%{http_code} %{exitcode}"]
    there = ["--resolve", f"{HOST}:{one.port}:127.0.0.1", f"https://{HOST}:{one.port}/v1/claims"]
    done = subprocess.run(
        [CURL, *command, *there, "--data-binary", f"@{body}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_a_body_that_does_not_come_is_refused(in_front):
    """By the proxy, after as long as the service would wait, with the service's envelope."""
    head = f"POST /v1/claims HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 100\r\n\r\n"
    with in_front.connected(timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(f"{head}a".encode())
        received = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    first, _, body = received.partition("\r\n\r\n")
    assert first.split()[1] == "408"
    assert json.loads(body) == Refusal("request_timeout").envelope()
