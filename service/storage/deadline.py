"""Deadlines for HTTP calls through `requests`: abort a call in whatever it waits for.

Timeouts of `requests` count from one received byte to the next, so a server that sends a byte now
and then holds a thread for minutes. Here another thread aborts the connections, and the call ends
at once. Only a name look-up cannot be aborted; the resolver's own timeout ends it.
"""

import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import requests
from google.auth.exceptions import TransportError
from google.auth.transport import Request as AuthRequest
from google.auth.transport import Response
from google.auth.transport.requests import Request
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse

ANSWER_BYTES_MAX: Final = 8 << 20
"""Of one answer, unpacked. The largest are a checkpoint's leaves, 6.4 MB; a listing's page of 1,000
long names is as large."""
CALL_SECONDS_MAX: Final = 3.0
"""To connect, and for each read; what aborts the connections bounds the whole."""


class CallFailed(Exception):
    """A call failed. Not an error of the libraries' own, which they would retry, with sleeps."""


class Connections:
    """The open connections of one session, which any thread may abort."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: dict[HTTPConnection, socket.socket] = {}
        self._is_aborted = False

    def add(self, owner: HTTPConnection, connection: socket.socket) -> None:
        """Keep a connection in place of its owner's last. Raises CallFailed after an abort.

        The descriptor is duplicated, because TLS takes over the original before its handshake.
        """
        with self._lock:
            if self._is_aborted:
                connection.close()
                raise CallFailed("aborted")
            last = self._sockets.pop(owner, None)
            if last is not None:
                last.close()
            self._sockets[owner] = connection.dup()

    def tidy(self) -> None:
        """Forget, between calls, the connections that the server or the pool has closed.

        Not sooner: the response of a closed connection may still be read, which must be abortable.
        """
        with self._lock:
            for owner in [one for one in self._sockets if one.sock is None]:
                self._sockets.pop(owner).close()

    def abort(self) -> None:
        """Shut down every connection, whoever reads or writes it, and allow no other."""
        with self._lock:
            self._is_aborted = True
            for connection in self._sockets.values():
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()
            self._sockets.clear()


class AbortableAdapter(HTTPAdapter):
    """An adapter for `requests` (and `AuthorizedSession`) whose connections can be aborted."""

    def __init__(self) -> None:
        self.connections = Connections()
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - theirs
        """Make the pools with connections that can be aborted."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _pools(self.connections)


class AbortableSession(requests.Session):
    """A session for one call."""

    def __init__(self) -> None:
        super().__init__()
        self._adapter = AbortableAdapter()
        self.mount("https://", self._adapter)
        self.mount("http://", self._adapter)

    def abort(self) -> None:
        """End the call under way, from any thread."""
        self._adapter.connections.abort()

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self.abort()


class OneTry(AuthRequest):
    """A transport for google-auth whose calls are not repeated."""

    def __init__(self, session: requests.Session) -> None:
        """Call by a session."""
        self._request: Callable[..., Response] = Request(session)

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Any = CALL_SECONDS_MAX,  # noqa: ANN401 - seconds, or a pair of them
        **_kwargs: object,
    ) -> Response:
        """Make one call. A server's error is CallFailed too, so that nothing sleeps and retries."""
        try:
            response = self._request(url, method, body, headers, timeout)
        except (TransportError, OSError) as error:
            raise CallFailed(type(error.__cause__ or error).__name__) from error
        status = response.status
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise CallFailed(f"status {status}")
        return response


class IamTransport(OneTry):
    """A transport for google-auth with one deadline for all of its calls."""

    def __init__(self, session: requests.Session, seconds_max: float) -> None:
        super().__init__(session)
        self._ends_at = time.monotonic() + seconds_max

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_kwargs: object,
    ) -> Response:
        """Make one call within what is left."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise CallFailed("the deadline has passed")
        return super().__call__(url, method, body, headers, min(left, timeout or left))


class _Bounded(HTTPResponse):
    """A response of which no more is read than an answer can have: it would be kept in memory."""

    def stream(
        self, amt: int | None = 65536, decode_content: bool | None = None
    ) -> Generator[bytes]:
        """Yield what came. Raises CallFailed beyond ANSWER_BYTES_MAX."""
        left = ANSWER_BYTES_MAX
        for some in super().stream(amt, decode_content):
            left -= len(some)
            if left < 0:
                self.close()  # shut down, a connection still takes what comes
                raise CallFailed("more bytes than an answer has")
            yield some


def _pools(connections: Connections) -> dict[str, type[HTTPConnectionPool]]:
    """Return urllib3's pools, with connections that register with `connections`."""

    class Http(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            connection = super()._new_conn()
            connections.add(self, connection)
            return connection

        def getresponse(self) -> HTTPResponse:
            response = super().getresponse()
            response.__class__ = _Bounded
            return response

    class Https(Http, HTTPSConnection):
        pass

    class HttpPool(HTTPConnectionPool):
        ConnectionCls = Http  # pyright: ignore[reportAssignmentType] - as urllib3's own

    class HttpsPool(HTTPSConnectionPool):
        ConnectionCls = Https  # pyright: ignore[reportAssignmentType] - as above

    return {"http": HttpPool, "https": HttpsPool}
