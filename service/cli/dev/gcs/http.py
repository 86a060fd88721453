"""What the store needs of ASGI: request bodies in chunks, and responses."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from service.cli.dev.gcs.verifier import Request

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

SERVER: Final = b"claim-ledger-local-store (development only)"
DRAIN_BYTES_MAX: Final = 128 * 1024 * 1024
DRAIN_SECONDS_MAX: Final = 10.0
"""Bounds on reading a refused body, so that the client gets the refusal and not a reset."""
READ_BYTES: Final = 256 * 1024


class Interrupted(Exception):
    """The client disconnected before its body ended, so there is nobody to respond to."""


class Body:
    """The body of one request, read once."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield each chunk as it arrives; raises Interrupted."""
        while not self._ended:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Interrupted
            self._ended = not message.get("more_body", False)
            yield message.get("body", b"")

    async def drain(self) -> None:
        """Read and discard the rest, within bounds."""
        left = DRAIN_BYTES_MAX
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                async for chunk in self.chunks():
                    left -= len(chunk)
                    if left < 0:
                        return


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; `file`, if given, is the body and is closed after it.

    Of a file that was opened for a range, `file_bytes` are sent.
    """

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    file: BinaryIO | None = field(default=None, repr=False)
    file_bytes: int | None = None


def request_of(scope: Scope) -> Request:
    """Return the request as received, undecoded."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    return Request(
        method=scope["method"],
        raw_path=scope["raw_path"].decode("latin-1"),
        raw_query=scope["query_string"].decode("latin-1"),
        headers=[
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers
        ],
    )


async def send_answer(send: Send, answer: Answer) -> None:
    """Send a response, streaming a file."""
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers]
    if answer.file is None:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    headers.append((b"server", SERVER))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.file is not None:
        with answer.file as file:
            left = sys.maxsize if answer.file_bytes is None else answer.file_bytes
            while chunk := await asyncio.to_thread(file.read, min(READ_BYTES, left)):
                left -= len(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": answer.body})
