"""Reading a request's body: bounded in size and in time."""

import asyncio
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request
from litestar.types import HTTPScope, Receive, Scope

from service.core.errors import Refusal
from service.facts.caller import Caller
from service.http.admission import AdmittedRequest
from service.http.decoding import decode

AnyRequest = Request[Any, Any, Any]
_T = TypeVar("_T", bound=msgspec.Struct)

BODY_BYTES_MAX: Final = 1024 * 1024
"""1 MiB; a larger body is refused with `payload_too_large`."""
DRAIN_FACTOR: Final = 16
"""A body that is too large is read and dropped up to so many times its limit, because a client that
is still sending would see its connection reset instead of the response."""
DRAIN_BYTES_MAX: Final = DRAIN_FACTOR * BODY_BYTES_MAX
BODY_SECONDS_MAX: Final = 10.0
"""A body that takes longer is refused with `request_timeout`."""
DROP_SECONDS_MAX: Final = 1.0
"""For a body that is refused because the process is busy: the answer has to leave within two."""


def caller_of(request: AnyRequest) -> Caller:
    """Return the caller that the gate authenticated."""
    return request.scope["state"]["caller"]


async def read_body(request: AnyRequest, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    """Return the whole body, once there is room for it.

    Raises Refusal: `payload_too_large`, `service_unavailable` where no room is free in time, or
    `request_timeout`, also for a connection that closed.
    """
    try:
        await _take_room(request, bytes_max)
    except Refusal:
        await drop_body(request.receive)
        raise
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            return await _read(request, bytes_max)
    except TimeoutError as error:
        raise Refusal("request_timeout") from error


async def read_as(request: AnyRequest, type_: type[_T]) -> _T:
    """Return a request's body as a `type_`. Raises Refusal as `read_body` and `decode` do."""
    return decode(await read_body(request), header(request.scope, b"content-type"), type_)


async def drop_body(receive: Receive) -> None:
    """Read a body that is refused and drop it, for a second at most.

    A client that is still sending would see its connection reset instead of the refusal.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(DROP_SECONDS_MAX):
            while (await receive()).get("more_body", False):
                pass


async def _take_room(request: AnyRequest, bytes_max: int) -> None:
    state = request.scope["state"]
    admitted: AdmittedRequest = state["admitted"]
    caller: Caller | None = state.get("caller")
    size = min(declared_bytes(request.scope), bytes_max)
    await admitted.hold(caller.partner_id if caller else "", size)


def header(scope: Scope, name: bytes) -> str | None:
    """Return the header of this name, in lower case, if there is one.

    Several are joined to a list (RFC 9110, 5.3), so whatever takes one value refuses them: a proxy
    might have looked at another one. The framework's `Headers` decode and index all of them.
    """
    values = [value for key, value in scope["headers"] if key == name]
    return b", ".join(values).decode("latin-1") if values else None


def declared_bytes(scope: HTTPScope) -> int:
    """Return how large a body says it is, at most `BODY_BYTES_MAX`; that, where it does not say."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return min(int(value), BODY_BYTES_MAX) if value.isdigit() else BODY_BYTES_MAX
        if name == b"transfer-encoding":
            return BODY_BYTES_MAX
    return 0


async def _read(request: AnyRequest, bytes_max: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    more = True
    while more and size <= bytes_max * DRAIN_FACTOR:
        event = await request.receive()
        if event["type"] != "http.request":
            raise Refusal("request_timeout", "The connection closed before the body was complete.")
        size += len(event["body"])
        more = event.get("more_body", False)
        if size <= bytes_max:
            chunks.append(event["body"])
    if size > bytes_max:
        raise Refusal("payload_too_large")
    return b"".join(chunks)
