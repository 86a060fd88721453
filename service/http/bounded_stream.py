"""A connection to somebody else's server, on which little can be received."""

import asyncio
import ssl
from typing import Any, Final

import httpcore2

from service.http.tls_stream import TlsStream

TLS_BYTES_MAX: Final = 64 * 1024
"""Of the handshake with its certificates, and of records beside the data that they hold."""
_READ_BYTES: Final = 2 * 1024
"""At a time: a hundred interim answers fit in, and take a few milliseconds."""


class BoundedStream(httpcore2.AsyncNetworkStream):
    """A connection on which little can be received, and little at a time."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, bytes_max: int) -> None:
        """Receive at most so many bytes, of heads, interim answers and bodies together."""
        self._stream = stream
        self._left = bytes_max

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
    ) -> bytes:
        """Return what came; raise ReadError where it is too much."""
        if self._left <= 0:
            raise httpcore2.ReadError("too long an answer")
        await asyncio.sleep(0)  # TLS may have more at hand, and would let nobody else go on
        data = await self._stream.read(min(max_bytes, _READ_BYTES, self._left), timeout)
        self._left -= len(data)
        return data

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
    ) -> None:
        """Send bytes."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
    ) -> httpcore2.AsyncNetworkStream:
        """Return the connection over TLS, bounded alike."""
        below = BoundedStream(self._stream, self._left + TLS_BYTES_MAX)
        stream = await TlsStream.over(below, ssl_context, server_hostname, timeout)
        return BoundedStream(stream, self._left)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the library's signature
        """Return what the connection knows of itself."""
        return self._stream.get_extra_info(info)
