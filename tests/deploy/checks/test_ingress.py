"""What HAProxy makes of the lines for its ingress controller, in sections like that one's."""

import shutil
import socket
import subprocess
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from service.core.errors import Refusal
from service.http.every_answer import every_answer
from tests.deploy.manifests import ingress_snippets
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until
from tests.processes import free_port

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin")
LIMIT = '_http_req_rate gt "500"'
CONNECTIONS_MAX = 64
SECTIONS = """
defaults haproxytech
  timeout http-request 10s
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout http-keep-alive 15s
frontend http from haproxytech
  mode http
  bind 127.0.0.1:{port}
  use_backend default_svc_claim-ledger-api_http
  {frontend}
backend default_svc_claim-ledger-api_http from haproxytech
  mode http
  balance roundrobin
  option forwardfor
  server SRV_1 127.0.0.1:1 disabled
  {backend}
"""
"""As the controller writes them where no pod is ready: the places of servers stay, disabled."""

pytestmark = pytest.mark.server


@contextmanager
def proxy(folder, requests_max=None):
    """Yield the port of a HAProxy that has the lines, and no server."""
    if HAPROXY is None:
        pytest.skip("there is no haproxy here")
    port, lines = free_port(), ingress_snippets()
    if requests_max is not None:
        assert LIMIT in lines["backend"]
        lines["backend"] = lines["backend"].replace(LIMIT, f'_http_req_rate gt "{requests_max}"')
    indented = {section: text.replace("\n", "\n  ") for section, text in lines.items()}
    path = folder / "haproxy.cfg"
    path.write_text(SECTIONS.format(port=port, **indented))
    process = subprocess.Popen([HAPROXY, "-db", "-f", path], stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: listens(port, process))
        yield port
    finally:
        process.terminate()
        _, said = process.communicate()
        assert "ALERT" not in said, said


def listens(port, process):
    """Return whether it can be connected to; fail if it has ended."""
    assert process.poll() is None
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    ("requests_max", "code", "wait"),
    [(None, "service_unavailable", "1"), (0, "rate_limited", "10")],
)
def test_the_proxys_own_answers_have_the_form_of_the_services(tmp_path, requests_max, code, wait):
    """While no pod is ready, and to whoever asks too often."""
    with proxy(tmp_path, requests_max) as port:
        answer = httpx.get(
            f"http://127.0.0.1:{port}/v1/claims", timeout=PATIENCE_SECONDS, verify=NO_TLS
        )
    assert (answer.status_code, answer.json()) == (
        {"service_unavailable": 503, "rate_limited": 429}[code],
        Refusal(code).envelope(),
    )
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Retry-After"] == wait
    for name, text in every_answer("https://api.example.com").items():
        assert answer.headers[name] == text


def test_one_network_has_no_more_than_its_connections(tmp_path):
    """The others are closed before anything is said on them."""
    with proxy(tmp_path) as port, ExitStack() as stack:
        address = ("127.0.0.1", port)
        clients = [
            stack.enter_context(socket.create_connection(address, PATIENCE_SECONDS))
            for _ in range(CONNECTIONS_MAX + 1)
        ]
        assert 0 < sum(map(is_answered, clients)) <= CONNECTIONS_MAX


def is_answered(client):
    """Return whether there is an answer on a connection, or it is closed without one."""
    with suppress(ConnectionError):
        client.sendall(b"GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        return client.recv(1) != b""
    return False
