"""A receiver of webhooks on this machine: it keeps what it gets, and answers as it is told."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Received(NamedTuple):
    """One request."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self):
        """The message's id."""
        return self.headers["webhook-id"]

    @property
    def event(self):
        """The CloudEvent."""
        return msgspec.json.decode(self.body)


class Receiver:
    """What came, and what is answered: bytes, by default or for the events of a subject.

    None: no answer at all, until the connection ends.
    """

    def __init__(self):
        self.requests: list[Received] = []
        self.answer = OK
        self.answers: dict[str, bytes | None] = {}
        self.tried = Counter()
        self.open, self.open_max = 0, 0
        self.url = ""

    async def take(self, reader, writer):
        """Serve one connection."""
        self.open += 1
        self.open_max = max(self.open, self.open_max)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:-2]
            headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in head)}
            body = await reader.readexactly(int(headers["content-length"]))
            one = Received(headers, body)
            subject = one.event.get("subject", "")
            self.tried[subject] += 1
            answer = self.answers.get(subject, self.answer)
            if answer is None:
                await reader.read()
                return
            if answer.startswith(b"HTTP/1.1 2"):
                self.requests.append(one)
            writer.write(answer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    @property
    def subjects(self):
        """What the events that it took are about, in their order."""
        return [one.event["subject"] for one in self.requests]


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None) -> AsyncGenerator[Receiver, None]:
    """Run a receiver; over TLS with a context that has its certificate."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.take, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    receiver.url = f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}/hooks?a=b"
    try:
        yield receiver
    finally:
        server.close()
