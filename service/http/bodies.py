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
DRAIN_BYTES_MAX: Final = DRAIN_FACTOR * BODY_BYTES_MAX
BODY_SECONDS_MAX: Final = 10.0
"""A body that takes longer is refused with `request_timeout`."""
_REST_SECONDS: Final = BODY_SECONDS_MAX - LATE_SECONDS
"""For a body that is late."""


def caller_of(request: AnyRequest) -> Caller:
    """Return the caller that the gate authenticated."""
    return request.scope["state"]["caller"]


async def read_body(request: AnyRequest, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    """Return the whole body, once there is room for it.

    Raises Refusal: `payload_too_large`; `service_unavailable` where no room is free in time, or it
    comes slowly and others wait for its room; or `request_timeout`, also for a connection that
    closed, and for a late body beside too many.
    """
    admitted = await _take_room(request, bytes_max)
    loop, has_ended, is_in_the_way = asyncio.get_running_loop(), False, False

    def is_late() -> None:
        if not has_ended and not deadline.expired():
            deadline.reschedule(loop.time() + (_REST_SECONDS if admitted.step_out() else 0.0))

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
                    return await _read(request, bytes_max)
            finally:
                has_ended = True
                late.cancel()
                admitted.step_in()
    except TimeoutError as error:
        if is_in_the_way:
            raise busy(SLOW) from error
        raise Refusal("request_timeout") from error


async def read_as(request: AnyRequest, type_: type[_T]) -> _T:
    """Return a request's body as a `type_`. Raises Refusal as `read_body` and `decode` do."""
    return decode(await read_body(request), header(request.scope, b"content-type"), type_)


async def _take_room(request: AnyRequest, bytes_max: int) -> AdmittedRequest:
    state = request.scope["state"]
    admitted: AdmittedRequest = state["admitted"]
    caller: Caller | None = state.get("caller")
    declared = content_length(request.scope)
    size = bytes_max if declared is None else min(declared, bytes_max)
    await admitted.hold(caller.partner_id if caller else "", size)
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
