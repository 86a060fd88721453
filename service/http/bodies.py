"""Reading a request's body: bounded in size and in time."""

import asyncio
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request

from service.core.errors import Refusal
from service.facts.caller import Caller
from service.http.decoding import decode

AnyRequest = Request[Any, Any, Any]
_T = TypeVar("_T", bound=msgspec.Struct)

BODY_BYTES_MAX: Final = 1024 * 1024
"""1 MiB; a larger body is refused with `payload_too_large`."""
DRAIN_BYTES_MAX: Final = 16 * 1024 * 1024
"""A body that is too large is read and dropped up to this size, because a client that is still
sending would see its connection reset instead of the response."""
BODY_SECONDS_MAX: Final = 10.0
"""A body that takes longer is refused with `request_timeout`."""


def caller_of(request: AnyRequest) -> Caller:
    """Return the caller that the gate authenticated."""
    return request.scope["state"]["caller"]


async def read_body(request: AnyRequest) -> bytes:
    """Return the whole body.

    Raises Refusal: `payload_too_large`, or `request_timeout`, also for a connection that closed.
    """
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            return await _read(request)
    except TimeoutError as error:
        raise Refusal("request_timeout") from error


async def read_as(request: AnyRequest, type_: type[_T]) -> _T:
    """Return a request's body as a `type_`. Raises Refusal as `read_body` and `decode` do."""
    return decode(await read_body(request), request.headers.get("content-type"), type_)


async def _read(request: AnyRequest) -> bytes:
    chunks: list[bytes] = []
    size = 0
    more = True
    while more and size <= DRAIN_BYTES_MAX:
        event = await request.receive()
        if event["type"] != "http.request":
            raise Refusal("request_timeout", "The connection closed before the body was complete.")
        size += len(event["body"])
        more = event.get("more_body", False)
        if size <= BODY_BYTES_MAX:
            chunks.append(event["body"])
    if size > BODY_BYTES_MAX:
        raise Refusal("payload_too_large")
    return b"".join(chunks)
