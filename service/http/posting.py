"""Posting to servers of others: bounded in bytes and time, no redirects, no proxy.

`post` is for those that an operator's settings name; those that partners name are reached by
`service/webhooks/sender.py`, which judges their addresses first.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, cast
from urllib.parse import SplitResult, urlsplit

import httpcore2

from service.http.bounded_stream import BoundedStream

CONNECT_SECONDS_MAX: Final = 5.0
SECONDS_MAX: Final = 20.0
"""For one request, from the look-up of the host to the end of the answer."""
HEAD_BYTES_MAX: Final = 16 * 1024
_USER_AGENT: Final = "claim-ledger/1"


class Unanswered(Exception):
    """No answer came. `str()` says why, and quotes nothing that was received."""


class PostAnswer(NamedTuple):
    """What was answered: the status, the type of the body, and the body."""

    status: int
    kind: str
    body: bytes


async def post(url: str, kind: str, body: bytes, bytes_max: int) -> PostAnswer:
    """Post to an `https` URL, or `http` on this machine, and return the answer.

    An answer whose body is larger than `bytes_max` is none. Raises Unanswered.
    """
    try:
        async with asyncio.timeout(SECONDS_MAX):
            return await _post(url, {"content-type": kind}, body, bytes_max)
    except (TimeoutError, httpcore2.TimeoutException) as error:
        raise Unanswered(f"no answer within {SECONDS_MAX:.0f} seconds") from error
    except httpcore2.ConnectError as error:
        raise Unanswered("no connection") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, ValueError) as error:
        raise Unanswered("the connection ended without an answer in HTTP, or it is long") from error


async def _post(url: str, headers: Mapping[str, str], body: bytes, bytes_max: int) -> PostAnswer:
    tls = await asyncio.to_thread(ssl.create_default_context)
    network = Network(HEAD_BYTES_MAX + bytes_max)
    async with posted(urlsplit(url), headers, body, tls, network) as answer:
        found = b""
        async for chunk in cast("Any", answer.stream):
            found += chunk
            if len(found) > bytes_max:
                raise ValueError("too long an answer")
        return PostAnswer(answer.status, _kind(answer.headers), found)


@asynccontextmanager
async def posted(
    url: SplitResult,
    headers: Mapping[str, str],
    body: bytes,
    tls: ssl.SSLContext,
    network: httpcore2.AsyncNetworkBackend,
) -> AsyncGenerator[httpcore2.Response]:
    """Post on a connection of its own, and yield the answer, of which the head has come.

    Raises what httpcore2 does; the caller bounds the time, and `network` what is received.
    """
    host = url.hostname or ""
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection = httpcore2.AsyncHTTPConnection(
        httpcore2.Origin(url.scheme.encode(), host.encode(), port),
        ssl_context=tls,
        network_backend=network,
    )
    request = httpcore2.Request(
        "POST",
        httpcore2.URL(scheme=url.scheme, host=host, port=port, target=target),
        headers={
            "host": url.netloc.rpartition("@")[2],
            "user-agent": _USER_AGENT,
            "connection": "close",
            "content-length": str(len(body)),
            **headers,
        },
        content=body,
        extensions={"timeout": {"connect": CONNECT_SECONDS_MAX}},
    )
    try:
        yield await connection.handle_async_request(request)
    finally:
        await connection.aclose()


def _kind(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the type of the body, without parameters."""
    kinds = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-type"]
    return kinds[0].partition(";")[0].strip().lower() if kinds else ""


class Network(httpcore2.AsyncNetworkBackend):
    """Makes connections on which so many bytes can be received.

    With `addresses`, to the first of them that answers, whatever host is asked for.
    """

    def __init__(self, bytes_max: int, addresses: Sequence[str] | None = None) -> None:
        self._bytes_max = bytes_max
        self._addresses = addresses
        # Its type depends on whether anyio is there, which the extra brings.
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection."""
        refused: Exception = httpcore2.ConnectError()
        for address in [host] if self._addresses is None else self._addresses:
            try:
                stream = await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
                return BoundedStream(stream, self._bytes_max)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        raise refused
