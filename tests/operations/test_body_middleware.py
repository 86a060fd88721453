"""What is read of bodies that nobody wants, piece by piece."""

import pytest

from service.operations.body_middleware import (
    PIECES_MAX,
    PIECES_OF_STRANGERS_MAX,
    BodyMiddleware,
)

CHUNKED = (b"transfer-encoding", b"chunked")
CLOSE = (b"connection", b"close")


class Connection:
    """A client that sends pieces of a body for ever, and what it is sent."""

    def __init__(self, piece=b"x"):
        self.received = 0
        self.sent = []
        self._piece = piece

    async def receive(self):
        """Return one more piece."""
        self.received += 1
        return {"type": "http.request", "body": self._piece, "more_body": True}

    async def send(self, message):
        """Keep what is sent, and how much had been received then."""
        self.sent.append((self.received, message))

    async def serve(self, app, *headers):
        """Have a request served; return the headers of its answer."""
        scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
        await BodyMiddleware(app)(scope, self.receive, self.send)
        return self.sent[0][1]["headers"]


def answering(*, caller=None, reads=0):
    """Return an application that reads some pieces and refuses."""

    async def app(scope, receive, send):
        if caller is not None:
            scope["state"] = {"caller": caller}
        for _ in range(reads):
            await receive()
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app


@pytest.mark.parametrize(
    ("caller", "pieces"), [(None, PIECES_OF_STRANGERS_MAX), ("a partner", PIECES_MAX)]
)
async def test_an_endless_body_is_not_read_for_ever(caller, pieces):
    """A stranger's least of all, however small its pieces are; then the connection is closed."""
    connection = Connection()
    assert await connection.serve(answering(caller=caller), CHUNKED) == [CLOSE]
    assert {received for received, _ in connection.sent} == {pieces}


async def test_a_body_ends_where_it_said():
    """The server is not asked once more; it would say that there is nothing left."""
    connection = Connection(b"12345")
    assert await connection.serve(answering(), (b"content-length", b"10")) == []
    assert connection.received == 2


async def test_whoever_reads_it_decides_how_much():
    """What was given up, as too large or too slow, is not read on."""
    connection = Connection()
    assert await connection.serve(answering(reads=3), CHUNKED) == [CLOSE]
    assert connection.received == 3


async def test_a_body_that_was_read_is_answered_at_once():
    """Nothing more is received, and the connection stays."""
    connection = Connection()
    assert await connection.serve(answering(reads=3), (b"content-length", b"3")) == []
    assert connection.received == 3


async def test_no_body_is_not_received():
    """What declares none is passed on as it is."""
    connection = Connection()
    assert await connection.serve(answering()) == []
    assert connection.received == 0


async def test_a_stream_leaves_as_it_comes():
    """Its pieces are not held until the last one."""
    connection, left = Connection(b"12"), []

    async def streaming(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for more in (True, True, False):
            await send({"type": "http.response.body", "body": b"x", "more_body": more})
            left.append(len(connection.sent))

    assert await connection.serve(streaming, (b"content-length", b"4")) == []
    assert (left, connection.received) == ([2, 3, 4], 2)
