"""What only a real socket shows: the bytes that clients send and receive."""

import json
import resource
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import psycopg
import pytest
import pytest_asyncio

from service.http.bodies import BODY_BYTES_MAX, DRAIN_FACTOR
from service.http.server import CONNECTIONS_MAX
from tests.contract.raw_requests import CLOSE, head
from tests.patience import PATIENCE_SECONDS
from tests.serving import served
from tests.topology import REPEATS_MAX
from tests.world import PUBLIC_URL


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(shared, topology, module_database_url, tmp_path_factory):
    """Return how to connect to a server, or to the proxy, and a partner's key as a header line."""
    authorization = f"Authorization: Bearer {(await shared.partner()).keys['live']}"
    if topology:
        yield topology.proxy.connected, authorization
        return
    directory = tmp_path_factory.mktemp("served")
    with served(module_database_url, directory, PUBLIC_URL=PUBLIC_URL) as one:
        address = ("127.0.0.1", one.port)
        yield partial(socket.create_connection, address), authorization


def exchange(connected, *pieces, seconds=PATIENCE_SECONDS):
    """Send pieces, a moment apart; return everything received until the server closes.

    `seconds` is how long a server that does not close is listened to. What a busy machine answers
    with 503 is sent again.
    """
    for _ in range(REPEATS_MAX):
        received = exchanged(connected, *pieces, seconds=seconds)
        if not received.startswith(b"HTTP/1.1 503 "):
            break
    return received


def exchanged(connected, *pieces, seconds):
    """Send pieces once; return everything received."""
    with connected(timeout=seconds) as connection:
        for nr, piece in enumerate(pieces):
            if nr:
                time.sleep(0.05)
            connection.sendall(piece)
        received = b""
        with suppress(TimeoutError):
            while chunk := connection.recv(65536):
                received += chunk
        return received


def post(path, auth, *headers, length):
    """Return the head of a POST with a Content-Length."""
    kind = "Content-Type: application/json"
    return head(f"POST {path} HTTP/1.1", auth, kind, f"Content-Length: {length}", CLOSE, *headers)


def read(answer):
    """Return (status, decoded body) of the last answer in some bytes."""
    start, _, body = answer.rpartition(b"\r\n\r\n")
    status = start.rpartition(b"HTTP/1.1 ")[2][:3]
    return int(status), json.loads(body)


def code(answer):
    """Return (status, code)."""
    status, body = read(answer)
    return status, body["code"]


BODY = b'{"partner_user_id": "u"}'
TARGET = "/v1/connect-requests"


@pytest.mark.in_process("is about what our own server drains, and by when")
@pytest.mark.parametrize("megabytes", [2, 10])
def test_a_client_that_sends_too_much_can_read_the_413(server, megabytes):
    """The rest is drained, so that the connection is not reset before the envelope arrives."""
    connected, auth = server
    size = megabytes * 2**20
    answer = exchange(connected, post(TARGET, auth, length=size), b" " * size)

    assert code(answer) == (413, "payload_too_large")


@pytest.mark.in_process("is about what our own server drains, and by when")
def test_an_endless_body_is_cut_off(server):
    """Of an announced 1 GiB 16 MiB are read; then the client gets 413 and can send no more."""
    connected, auth = server
    sent, answer = 0, b""
    with connected(timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(post(TARGET, auth, length=2**30))
        with suppress(ConnectionError):
            while sent < 2**30:
                sent += connection.send(b" " * 2**16)
        with suppress(ConnectionError):  # a reset may overtake the answer
            while chunk := connection.recv(65536):
                answer += chunk

    # What the sockets' buffers hold besides is some MiB.
    drained = DRAIN_FACTOR * BODY_BYTES_MAX
    assert drained < sent < drained + 2**27
    assert answer == b"" or code(answer) == (413, "payload_too_large")
    assert b" 201 " in exchange(connected, post(TARGET, auth, length=len(BODY)), BODY)


def test_a_body_in_chunks_is_read(server):
    """Transfer-Encoding: chunked, in pieces that arrive one by one."""
    connected, auth = server
    headers = ("Content-Type: application/json", "Transfer-Encoding: chunked", CLOSE)
    start = head(f"POST {TARGET} HTTP/1.1", auth, *headers)
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:5], BODY[5:])]

    assert read(exchange(connected, start, *chunks, b"0\r\n\r\n"))[0] == 201


@pytest.mark.in_process("is about what our own server tells us of chunks")
def test_malformed_chunks_are_told_of(server):
    """Both what may have happened: our server does not tell them apart."""
    connected, auth = server
    headers = ("Content-Type: application/json", "Transfer-Encoding: chunked", CLOSE)
    answer = exchange(connected, head(f"POST {TARGET} HTTP/1.1", auth, *headers), b"zz\r\n")

    assert code(answer) == (408, "request_timeout")
    assert "chunks were malformed" in read(answer)[1]["message"]


def test_expect_100_continue_is_answered(server):
    """The client waits for permission to send, and gets it."""
    connected, auth = server
    with connected(timeout=PATIENCE_SECONDS) as connection:
        expects = post(TARGET, auth, "Expect: 100-continue", length=len(BODY))
        connection.sendall(expects)
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(BODY)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    assert read(received)[0] == 201


@pytest.mark.in_process("is about what our own server asks for")
def test_a_body_that_would_be_too_large_is_not_asked_for(server):
    """Whoever expects a 100 gets the 413 instead of it, and the connection is closed."""
    connected, auth = server
    answer = exchange(connected, post(TARGET, auth, "Expect: 100-continue", length=3_000_000))

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert code(answer) == (413, "payload_too_large")


def test_pipelined_requests_are_answered_in_order(server):
    """Three requests in one packet get three answers, in order."""
    connected, auth = server
    lines = ("GET /v1/claims HTTP/1.1", "GET /none HTTP/1.1")
    answer = exchange(connected, head(lines[0], auth) + head(lines[1]) + head(lines[0], CLOSE))

    statuses = [one[:3] for one in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"400", b"404", b"401"]


@pytest.mark.parametrize("line", ["Authorization:", "Authorization: ", "Authorization: Bearer"])
def test_an_empty_authorization_header_is_a_malformed_key(server, line):
    """The header is present, so it does not count as missing."""
    connected, _ = server
    answer = exchange(connected, head("GET /v1/claims HTTP/1.1", line, CLOSE))

    assert code(answer) == (401, "auth_invalid_format")


@pytest.mark.parametrize("method", ["TRACE", "BREW", "OPTIONS", "PUT"])
def test_unsupported_methods_are_405(server, method):
    """405 in the envelope."""
    connected, auth = server
    answer = exchange(connected, head(f"{method} /v1/claims HTTP/1.1", auth, CLOSE))

    assert code(answer) == (405, "method_not_allowed")


@pytest.mark.parametrize("text", ["%0d%0aX:%20y", "%e2%80%ae", "%ff", "%ed%a0%80", "%00"])
def test_an_address_that_no_header_can_hold_is_not_found(server, text):
    """On pages, which lead to addresses of ours: 404, as for anything that nothing has."""
    connected, _ = server
    for path in (f"/sign-in/{text}", f"/backoffice/entities/{text}/connect"):
        answer = exchange(connected, head(f"GET {path} HTTP/1.1", "Accept: text/html", CLOSE))
        assert answer.startswith(b"HTTP/1.1 404 "), path
        assert b"<code>not_found</code>" in answer, path


@pytest.mark.in_process("is about what our own server passes on")
def test_a_host_in_the_request_line_counts_without_a_host_header(server):
    """421 for another one; where there is a Host, the server passes that one alone on."""
    connected, _ = server
    line = "GET http://evil.example/v1/claims HTTP/1.1"
    bare = f"{line}\r\n{CLOSE}\r\n\r\n".encode()

    assert code(exchange(connected, bare)) == (421, "host_unknown")
    assert code(exchange(connected, head(line, CLOSE))) == (401, "auth_missing")


def test_head_has_no_body(server):
    """405 and no bytes after the head."""
    connected, auth = server
    answer = exchange(connected, head("HEAD /v1/claims HTTP/1.1", auth, CLOSE))

    assert answer.startswith(b"HTTP/1.1 405 ")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "raw",
    [
        b"NOT HTTP AT ALL\r\n\r\n",
        b"GET /v1/claims HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /v1/claims HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 2_000_000 + b"\r\n\r\n",
        b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n1",
        b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/claims HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\0" * 100,
    ],
    ids=range(9),
)
def test_malformed_http_does_no_harm(server, raw):
    """Readings: outside the envelope. No 5xx, and the next client is served."""
    connected, auth = server
    answer = b""
    with suppress(ConnectionError, ssl.SSLEOFError):  # the proxy, or we, end it
        answer = exchange(connected, raw, seconds=1)
    assert not answer.startswith(b"HTTP/1.1 5")

    assert b" 201 " in exchange(connected, post(TARGET, auth, length=len(BODY)), BODY)


def test_a_client_that_leaves_in_mid_body_does_no_harm(server):
    """After half a body and silence, the next client is served."""
    connected, auth = server
    with connected(timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(post(TARGET, auth, length=1000) + BODY)

    assert b" 201 " in exchange(connected, post(TARGET, auth, length=len(BODY)), BODY)


@pytest.mark.in_process("is about when our own server gives a connection up")
def test_a_client_that_ends_its_side_of_a_connection_gets_no_answer(server, module_database_url):
    """It has sent all of its request, and will send no more: to the server it has gone."""
    connected, auth = server

    def answer():
        with connected(timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(post(TARGET, auth, length=len(BODY)) + BODY)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(65536)

    # Its event cannot be written meanwhile, so that no answer is faster than the client's end.
    # Only a busy machine answers without one, with 503.
    with psycopg.connect(module_database_url) as owner:
        owner.execute("lock table accounts.events, live.events in share mode")
        assert b"" in (answer() for _ in range(REPEATS_MAX))
    assert b" 201 " in exchange(connected, post(TARGET, auth, length=len(BODY)), BODY)


@pytest.mark.in_process("holds every place of the process that answers")
def test_silent_connections_keep_nobody_out(server):
    """More than the server has places for, from one address: others are still answered."""
    connected, auth = server
    with ExitStack() as stack, file_limit(CONNECTIONS_MAX * 2):
        for _ in range(CONNECTIONS_MAX + 200):
            silent = connected(timeout=PATIENCE_SECONDS, source_address=("127.0.0.2", 0))
            stack.enter_context(silent)
        answer = exchange(connected, post(TARGET, auth, length=len(BODY)), BODY)
    assert read(answer)[0] == 201


@contextmanager
def file_limit(least: int) -> Iterator[None]:
    """Let this process open at least so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, least), max(hard, least)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.in_process("is about our own server: the proxy speaks HTTP/2")
def test_http_2_is_not_spoken(server):
    """A server that waits to see which version a client speaks waits for silent ones for ever."""
    connected, _ = server
    answer = exchange(connected, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
    assert b"\x00\x00" not in answer
