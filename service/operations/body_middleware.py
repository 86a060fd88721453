"""The outermost middleware: the bodies of requests that are answered without being read.

The server closes a connection on which a part of a body is left, and mostly says so too late: the
client's next request on it would be lost.
"""

import asyncio
import math
from dataclasses import dataclass
from typing import Final

from litestar.types import ASGIApp, Message, Receive, ReceiveMessage, Scope, Send

from service.http.bodies import content_length, header

DROP_SECONDS_MAX: Final = 0.5
"""The answer waits as long for a body that nobody wants: a busy process has to answer within two
seconds, most of which it may have waited for a place."""
PIECES_MAX: Final = 1024
"""Of a partner's body, as the server hands them out: up to 16 KiB each, and a packet at least."""
PIECES_OF_STRANGERS_MAX: Final = 128
"""Of everybody else's: they take 5 ms, 40 µs each."""
_CLOSE: Final = (b"connection", b"close")


@dataclass(frozen=True, slots=True)
class BodyMiddleware:
    """Drops a body that is left unread, before it is answered; or says that it closes.

    The answer waits for that outside all other layers: it occupies no place of the process.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        size = content_length(scope) if scope["type"] == "http" else 0
        if size == 0:
            await self.app(scope, receive, send)
            return
        body = _Body(receive, math.inf if size is None else size)
        held: list[Message] = []
        is_held = True

        async def release() -> None:
            nonlocal is_held
            if not await _ends(body, scope):
                assert held[0]["type"] == "http.response.start"  # noqa: S101 - as ASGI has it
                held[0]["headers"] = [*held[0]["headers"], _CLOSE]
            is_held = False
            for message in held:
                await send(message)

        async def send_or_hold(message: Message) -> None:
            if not is_held or (body.ended and not held):
                await send(message)
                return
            held.append(message)
            if message["type"] == "http.response.body" and message.get("more_body", False):
                await release()  # a stream is not held until its end

        await self.app(scope, body.receive, send_or_hold)
        if held and is_held:
            await release()


class _Body:
    """A body that is being received."""

    __slots__ = ("_left", "_receive", "begun", "ended")

    def __init__(self, receive: Receive, size: float) -> None:
        """`size` is what was declared, or infinite."""
        self.begun = self.ended = False
        self._left = size
        self._receive = receive

    async def receive(self) -> ReceiveMessage:
        """Return the next piece; the last one says so, which the server's own does not."""
        self.begun = True
        event = await self._receive()
        if event["type"] == "http.request":
            self._left -= len(event["body"])
            if self._left <= 0:
                event["more_body"] = False
            self.ended = not event.get("more_body", False)
        else:
            self.ended = True
        return event

    async def drop(self, pieces_max: int) -> None:
        """Read what is left, up to so many pieces."""
        for _ in range(pieces_max):
            await self.receive()
            if self.ended:
                return


async def _ends(body: _Body, scope: Scope) -> bool:
    """Return whether a body has been read to its end, if need be here.

    Whoever began to read it and stopped has found that it is too large or too slow. Who expects a
    100 has not sent it, and need not.
    """
    if body.ended or body.begun or header(scope, b"expect") is not None:
        return body.ended
    is_partner = "caller" in scope.get("state", {})
    try:
        async with asyncio.timeout(DROP_SECONDS_MAX):
            await body.drop(PIECES_MAX if is_partner else PIECES_OF_STRANGERS_MAX)
    except TimeoutError:
        pass
    return body.ended
