"""Reading a request's body: bounded in size and in time."""

import asyncio
from typing import Any, Final

from litestar import Request

from service.core.errors import Refusal
from service.facts.caller import Caller

AnyRequest = Request[Any, Any, Any]

BODY_BYTES_MAX: Final = 1024 * 1024
"""1 MiB; a larger body is refused with `payload_too_large`."""
DRAIN_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a body that is too large, this much is read and dropped: a client that is still sending would
see its connection reset instead of the answer."""
BODY_SECONDS_MAX: Final = 10.0
"""A body that takes longer is refused with `request_timeout`."""


def caller_of(request: AnyRequest) -> Caller:
    """Return who is calling, as the gate found out."""
    return request.scope["state"]["caller"]


async def read_body(request: AnyRequest) -> bytes:
    """Return the whole body; refuses with `payload_too_large` or `request_timeout`."""
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            return await _read(request)
    except TimeoutError as error:
        raise Refusal("request_timeout") from error


async def _read(request: AnyRequest) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        event = await request.receive()
        if event["type"] != "http.request":
            raise Refusal("request_timeout", "The connection closed before the body was complete.")
        chunk = event["body"]
        size += len(chunk)
        if size > DRAIN_BYTES_MAX:
            raise Refusal("payload_too_large")
        if size <= BODY_BYTES_MAX:
            chunks.append(chunk)
        if not event.get("more_body", False):
            break
    if size > BODY_BYTES_MAX:
        raise Refusal("payload_too_large")
    return b"".join(chunks)
