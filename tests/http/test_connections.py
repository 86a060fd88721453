"""Connections that are silent, or too many, keep nobody out."""

import asyncio
import errno
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from service.http import connections, server
from service.http.connections import (
    SILENT_SECONDS_MAX,
    AcceptedConnection,
    ConnectionWatch,
    close_all,
    to_close,
)
from service.http.server import embedded
from tests.patience import PATIENCE_SECONDS, eventually
from tests.processes import free_port

MOST = 100


def of(network: str, count: int, silent: float = 1.0) -> list[AcceptedConnection]:
    """Return connections of a network, each silent a little longer than the one before."""
    return [
        AcceptedConnection(number, (network, number), network, silent + number / 1000)
        for number in range(count)
    ]


def closed(*groups: list[AcceptedConnection]) -> dict[str, int]:
    """Return how many of each network would be closed, of so many places."""
    chosen = to_close([one for group in groups for one in group], MOST)
    networks = {group[0].network for group in groups}
    return {name: sum(one.network == name for one in chosen) for name in networks}


def test_who_has_most_loses_most():
    """Where places are scarce, whoever has few keeps them, and half of the places are free."""
    assert closed(of("a", 74)) == {"a": 0}
    assert closed(of("a", 75)) == {"a": 25}
    assert closed(of("a", 90), of("b", 5)) == {"a": 45, "b": 0}
    assert closed(of("a", 60), of("b", 30), of("c", 5)) == {"a": 38, "b": 8, "c": 0}


def test_the_longest_silent_are_closed_first():
    """Whoever waits for an answer has just sent something."""
    chosen = to_close(of("a", 80), MOST)
    assert {one.fd for one in chosen} == set(range(50, 80))


def test_silence_decides_where_every_network_has_one():
    """Sharing places among more networks than there are to share would close none."""
    many = [AcceptedConnection(n, (n,), str(n), n / 10) for n in range(90)]
    assert {one.fd for one in to_close(many, MOST)} == set(range(50, 90))


def test_what_nobody_reads_is_closed():
    """However much room there is."""
    dead = of("a", 2, SILENT_SECONDS_MAX)
    assert to_close(dead + of("b", 2), MOST) == dead[1:]


@pytest.mark.server
@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_the_process_closes_its_own_connections(monkeypatch, family, host):
    """Those to its ports, and neither its listener nor what it has opened itself."""
    seen: list[int] = []
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((host, 0), family=family))
        clients, accepted = [], []
        for _ in range(8):
            clients.append(
                stack.enter_context(socket.create_connection(listener.getsockname()[:2]))
            )
            accepted.append(stack.enter_context(listener.accept()[0]))
        pair = [stack.enter_context(one) for one in socket.socketpair()]
        watch = ConnectionWatch([listener.getsockname()[1]], seen.append)
        monkeypatch.setattr(watch, "_most", 10)
        before = _files()
        assert watch.look(for_silence=False) == 3
        assert _files() == before
        for one in clients:
            one.settimeout(0)
        ended = [one for one in clients if _is_ended(one)]
        assert (len(ended), seen) == (3, [3])
        assert watch.look(for_silence=True) == 0
        pair[0].sendall(b"x")
        assert pair[1].recv(1) == b"x"
        clients.append(stack.enter_context(socket.create_connection(listener.getsockname()[:2])))


async def test_they_are_looked_at_again_after_no_file_was_left(monkeypatch):
    """Not even to look; one line says so."""
    watch, looks = ConnectionWatch([], len), []

    def look(*, for_silence):
        looks.append(for_silence)
        if len(looks) < 3:
            raise OSError(errno.EMFILE, "no file is left")

    monkeypatch.setattr(watch, "look", look)
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0)
    with capture_logs() as lines:
        watch.loop.start()
        await eventually(lambda: len(looks) > 3)
        await watch.loop.stop()
    assert [line["event"] for line in lines] == ["connections cannot be looked at"]


def test_half_of_the_files_are_for_connections(monkeypatch):
    """The rest is left for the database, for Redis, and for looking at them."""
    monkeypatch.setattr(server, "getrlimit", lambda _: (1024, 1024))
    assert server.connections_max() == 512
    monkeypatch.setattr(server, "getrlimit", lambda _: (20_000, 20_000))
    assert server.connections_max() == server.CONNECTIONS_MAX


@pytest.mark.server
async def test_a_stop_waits_for_no_request_that_is_never_finished():
    """The server does not return before its connections have ended."""
    port = free_port()
    async with embedded(_answer, "127.0.0.1", port) as serving:
        exchange = asyncio.create_task(_exchange(port, b"GET / HTTP/1.1\r\n"))
        await eventually(lambda: close_all([port]))
        assert (await exchange, serving.done()) == (b"", False)


def _files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _is_ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.mark.server
async def test_a_client_that_sends_nothing_more_is_left(monkeypatch):
    """Before a head, in the middle of one, and after a response: each has one deadline."""
    settings = server.HTTP1.__class__(header_read_timeout=100)
    monkeypatch.setattr(server, "HTTP1", settings)
    port = free_port()
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    async with embedded(_answer, "127.0.0.1", port):
        ends = [await _exchange(port, sent) for sent in (b"", b"G", head, head + b"\r\n")]
    assert [end.partition(b"\r\n")[0] for end in ends[:3]] == [b""] * 3
    assert ends[3].startswith(b"HTTP/1.1 200 ")


@pytest.mark.server
async def test_nothing_but_http_1_is_spoken():
    """An HTTP/2 client is refused at its first bytes; nobody is waited for to choose."""
    port = free_port()
    async with embedded(_answer, "127.0.0.1", port):
        answer = await _exchange(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
    assert b"200" not in answer
    assert server.HTTP1.header_read_timeout == server.HEAD_SECONDS_MAX * 1000


async def _exchange(port: int, sent: bytes) -> bytes:
    """Send bytes; return everything until the server closes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.01)
        writer.write(sent)
        answer = await reader.read()
        writer.close()
        return answer


async def _answer(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
