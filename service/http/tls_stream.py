"""TLS on a connection whose bytes are counted: records that hold no data are bytes, too."""

import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

import httpcore2

_READ_BYTES: Final = 16 * 1024

T = TypeVar("T")


class TlsStream(httpcore2.AsyncNetworkStream):
    """A connection over TLS, made by `over`; what it receives comes through the one below it."""

    def __init__(
        self, stream: httpcore2.AsyncNetworkStream, context: ssl.SSLContext, hostname: str | None
    ) -> None:
        self._stream = stream
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=hostname)

    @classmethod
    async def over(
        cls,
        stream: httpcore2.AsyncNetworkStream,
        context: ssl.SSLContext,
        hostname: str | None,
        timeout: float | None,  # noqa: ASYNC109 - the library's signature
    ) -> "TlsStream":
        """Return the connection once both sides agree; raise ConnectError where they do not."""
        one = cls(stream, context, hostname)
        try:
            await one._until_done(one._tls.do_handshake, timeout)
        except (ssl.SSLError, httpcore2.NetworkError) as error:
            await stream.aclose()
            raise httpcore2.ConnectError(str(error)) from error
        return one

    async def _until_done(self, call: Callable[[], T], timeout: float | None) -> T:  # noqa: ASYNC109 - as above
        """Return what a call of TLS returns, once it has received and sent what that takes."""
        while True:
            try:
                result = call()
            except ssl.SSLWantReadError:
                await self._send(timeout)
                data = await self._stream.read(_READ_BYTES, timeout)
                self._received.write(data) if data else self._received.write_eof()
            else:
                await self._send(timeout)
                return result

    async def _send(self, timeout: float | None) -> None:  # noqa: ASYNC109 - as above
        if data := self._to_send.read():
            await self._stream.write(data, timeout)

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> bytes:
        """Return what came; nothing at the end."""
        try:
            return await self._until_done(lambda: self._tls.read(max_bytes), timeout)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> None:
        """Send bytes."""
        try:
            if buffer:
                await self._until_done(lambda: self._tls.write(buffer), timeout)
        except ssl.SSLError as error:
            raise httpcore2.WriteError(str(error)) from error

    async def aclose(self) -> None:
        """Close the connection, without a farewell: each has one answer, whose length is known."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: there is no TLS within TLS."""
        raise NotImplementedError

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the library's signature
        """Return what the connection knows of itself."""
        return self._tls if info == "ssl_object" else self._stream.get_extra_info(info)
