"""Reading a request's body: bounded in size and in time."""

import asyncio
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request
from litestar.types import Scope

from service.core.errors import Refusal, busy
from service.facts.caller import Caller
from service.http.admission import LATE_SECONDS, SLOW, AdmittedRequest
from service.http.decoding import decode

AnyRequest = Request[Any, Any, Any]
_T = TypeVar("_T", bound=msgspec.Struct)

BODY_BYTES_MAX: Final = 1024 * 1024
"""1 MiB; a larger body is refused with `payload_too_large`."""
DRAIN_FACTOR: Final = 16
"""A body that is too large is read and dropped up to so many times its limit, because a client that
is still sending would see its connection reset instead of the response."""
BODY_SECONDS_MAX: Final = 10.0
"""A body that takes longer is refused with `request_timeout`."""


def caller_of(request: AnyRequest) -> Caller:
    """Return the caller that the gate authenticated."""
    return request.scope["state"]["caller"]


async def read_body(request: AnyRequest, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    """Return the whole body, once there is room for it.

    Raises Refusal: `payload_too_large`, from the moment that its size is known however it goes on;
    `service_unavailable` where no room is free in time, or it comes slowly and others wait for its
    room; or `request_timeout`, also for a connection that closed, and for a late body beside too
    many.
    """
    admitted = await _take_room(request, bytes_max)
    loop, has_ended, is_in_the_way = asyncio.get_running_loop(), False, False
    body = _Body(request, bytes_max)

    def is_late() -> None:
        if not has_ended and not deadline.expired():
            rest = BODY_SECONDS_MAX - LATE_SECONDS if admitted.step_out() else 0.0
            deadline.reschedule(loop.time() + rest)

    def end() -> None:
        nonlocal is_in_the_way
        if not has_ended and not deadline.expired():
            is_in_the_way = True
            deadline.reschedule(loop.time())

    try:
        async with asyncio.timeout(None) as deadline:
            # After what is ready by then: if it was the process that was late, the body has come.
            late = loop.call_later(LATE_SECONDS, loop.call_soon, is_late)
            try:
                with admitted.arrives(partial(loop.call_soon, end)):
                    await body.read()
                if body.is_too_large:
                    admitted.shrink(0)
                    await body.drain()
            finally:
                has_ended = True
                late.cancel()
                admitted.step_in()
    except (TimeoutError, _ClosedError) as error:
        if not body.is_too_large:
            raise _unfinished(error, is_in_the_way=is_in_the_way) from error
    if body.is_too_large:
        raise Refusal("payload_too_large")
    whole = b"".join(body.pieces)
    admitted.shrink(len(whole))  # one in chunks took as much as may come
    return whole


async def read_as(request: AnyRequest, type_: type[_T]) -> _T:
    """Return a request's body as a `type_`. Raises Refusal as `read_body` and `decoded` do."""
    return decoded(request, await read_body(request), type_)


def decoded(request: AnyRequest, body: bytes, type_: type[_T]) -> _T:
    """Return a body that was read as a `type_`.

    Raises Refusal: `invalid_json` for one that is compressed, and others as `decode` does.
    """
    coding = header(request.scope, b"content-encoding")
    if coding is not None and coding.strip().lower() not in {"", "identity"}:
        raise Refusal("invalid_json", _CODED)
    return decode(body, header(request.scope, b"content-type"), type_)


async def _take_room(request: AnyRequest, bytes_max: int) -> AdmittedRequest:
    state = request.scope["state"]
    admitted: AdmittedRequest = state["admitted"]
    caller: Caller | None = state.get("caller")
    declared = content_length(request.scope)
    size = bytes_max if declared is None else declared
    await admitted.hold(caller.partner_id if caller else "", size if size <= bytes_max else 0)
    return admitted


def header(scope: Scope, name: bytes) -> str | None:
    """Return the header of this name, in lower case, if there is one.

    Several are joined to a list (RFC 9110, 5.3), so whatever takes one value refuses them: a proxy
    might have looked at another one. The framework's `Headers` decode and index all of them.
    """
    values = [value for key, value in scope["headers"] if key == name]
    return b", ".join(values).decode("latin-1") if values else None


def content_length(scope: Scope) -> int | None:
    """Return how large a request says that its body is; None where it comes in chunks."""
    length: int | None = 0
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = int(value) if value.isdigit() else None
        elif name == b"transfer-encoding":
            return None
    return length


_CODED: Final = "Compressed bodies are not supported; send it without Content-Encoding."
_CLOSED: Final = (
    "The connection closed, or the body's chunks were malformed, before the body was complete."
)
"""The server tells us of both alike."""


class _ClosedError(Exception):
    """The connection closed before the body was complete."""


class _Body:
    """A body as it arrives, of which no more than `bytes_max` are kept."""

    def __init__(self, request: AnyRequest, bytes_max: int) -> None:
        self.pieces: list[bytes] = []
        self._declared = content_length(request.scope) or 0
        self._is_expected = header(request.scope, b"expect") is not None
        self._receive = request.receive
        self._bytes_max = bytes_max
        self._size = 0
        self._more = True

    @property
    def is_too_large(self) -> bool:
        """Return whether what was declared, or has come, is more than may come."""
        return max(self._declared, self._size) > self._bytes_max

    async def read(self) -> None:
        """Read it to its end, or until it is too large."""
        while self._more and not self.is_too_large:
            self.pieces.append(await self._next())

    async def drain(self) -> None:
        """Drop what still comes, unless the client waits to be asked for it."""
        self.pieces.clear()
        if self._size or not self._is_expected:
            while self._more and self._size <= self._bytes_max * DRAIN_FACTOR:
                await self._next()

    async def _next(self) -> bytes:
        event = await self._receive()
        if event["type"] != "http.request":
            raise _ClosedError
        self._size += len(event["body"])
        self._more = event.get("more_body", False)
        return event["body"]


def _unfinished(error: Exception, *, is_in_the_way: bool) -> Refusal:
    if isinstance(error, _ClosedError):
        return Refusal("request_timeout", _CLOSED)
    return busy(SLOW) if is_in_the_way else Refusal("request_timeout")
