"""Whoever is refused before their body is read can go on, or is told that they cannot."""

import socket
import time
from typing import NamedTuple

import pytest
import pytest_asyncio

from tests.contract.raw_requests import head
from tests.patience import PATIENCE_SECONDS
from tests.serving import served
from tests.tables import every_row
from tests.world import PUBLIC_URL

pytestmark = pytest.mark.in_process("is about what our own server reads, and when it closes")

REPEATS = 8
GAP_SECONDS = 0.02
SMALL, LARGE = 8_000, 200_000
LIMIT = 5
NEXT = head("GET /health/live HTTP/1.1")
JSON = "Content-Type: application/json"


class Server(NamedTuple):
    """Where it listens, and the keys of two partners, one of which has no request left."""

    port: int
    key: str
    spent: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(shared, module_database_url, tmp_path_factory):
    """Return a server."""
    keys = [(await shared.partner()).keys["live"] for _ in range(2)]
    directory = tmp_path_factory.mktemp("served")
    given = {"PUBLIC_URL": PUBLIC_URL, "RATE_LIMIT_PER_MINUTE": str(LIMIT)}
    with served(module_database_url, directory, **given) as one:
        here = Server(one.port, *(f"Authorization: Bearer {key}" for key in keys))
        for _ in range(LIMIT):
            sent(here, head("GET /v1/claims HTTP/1.1", here.spent))
        yield here


def sent(server, start, *pieces):
    """Send a request in pieces, and another one on its connection; return the status of the first.

    If that says that the connection is closed, it has to be; otherwise the second is answered.
    """
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(start)
        for piece in pieces:
            time.sleep(GAP_SECONDS)
            connection.sendall(piece)
        file = connection.makefile("rb")
        status, headers = answered(file)
        if headers.get("connection") == "close":
            assert file.read(1) == b""
        else:
            connection.sendall(NEXT)
            assert answered(file)[0] == 200
        return status


def answered(file):
    """Return the status and the headers of an answer, read to its end."""
    status = int(file.readline().split()[1])
    lines = iter(file.readline, b"\r\n")
    headers = dict(line.decode().rstrip().lower().split(": ", 1) for line in lines)
    file.read(int(headers["content-length"]))
    return status, headers


def refused(server):
    """Return each kind of refusal that reads no body: its status, first line and headers."""
    return [
        (401, "POST /v1/claims HTTP/1.1", ()),
        (429, "POST /v1/claims HTTP/1.1", (server.spent,)),
        (404, "POST /v1/none HTTP/1.1", (server.key,)),
        (405, "PUT /v1/claims HTTP/1.1", (server.key,)),
        (404, "POST /none HTTP/1.1", ()),
        (200, "GET /health/live HTTP/1.1", ()),
    ]


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_next_request_is_answered(server, size):
    """A body that comes after its head is dropped, and so is one that could have been taken."""
    with every_row() as row:
        for status, line, headers in refused(server):
            start = head(line, *headers, JSON, f"Content-Length: {size}")
            for number in range(REPEATS):
                with row(status, line, number):
                    assert sent(server, start, b"x" * size) == status


def test_a_body_in_chunks_is_dropped_too(server):
    """Its length is not known beforehand."""
    chunk = b"%x\r\n%s\r\n" % (SMALL, b"x" * SMALL)
    with every_row() as row:
        for status, line, headers in refused(server):
            start = head(line, *headers, JSON, "Transfer-Encoding: chunked")
            for number in range(REPEATS):
                with row(status, line, number):
                    assert sent(server, start, chunk, chunk, b"0\r\n\r\n") == status


def test_another_host_is_refused_alike(server):
    """By what refuses before anything is done, as a busy process does."""
    start = b"POST /v1/claims HTTP/1.1\r\nHost: other.example\r\nContent-Length: %d\r\n\r\n" % SMALL
    assert {sent(server, start, b"x" * SMALL) for _ in range(REPEATS)} == {421}


def test_who_expects_a_100_need_not_send(server):
    """The refusal comes instead of it, and the connection is closed."""
    expecting = ("Expect: 100-continue", f"Content-Length: {SMALL}")
    with every_row() as row:
        for status, line, headers in refused(server):
            with row(status, line):
                assert sent(server, head(line, *headers, *expecting)) == status


def test_a_body_that_does_not_come_is_not_waited_for(server):
    """Not for long: then the connection is closed, and the answer says so."""
    start = head("POST /v1/claims HTTP/1.1", f"Content-Length: {SMALL}")
    assert sent(server, start) == 401
