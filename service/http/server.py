"""How every server of ours listens: HTTP/1 alone, with deadlines and a bound on connections."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from resource import RLIMIT_NOFILE, getrlimit
from typing import Any, Final

import structlog
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from service.core import logs

HTTP: Final = HTTPModes.http1
"""Where the server looks which version a client speaks, it waits for its first bytes for ever."""

HEAD_SECONDS_MAX: Final = 30
"""For the whole head of a request, from the moment that the connection is made or that the last
response is sent. A proxy has to close the connections that it keeps before this."""

BUFFER_BYTES_MAX: Final = 16 * 1024
"""Read from a connection at once: a head, or a part of a body. A connection that has carried a
large body keeps as much; with Granian's 400 KiB six hundred of them took 190 MB, and with 32 KiB
an overload 8 to 30 MB more than with this."""

HTTP1: Final = HTTP1Settings(
    header_read_timeout=HEAD_SECONDS_MAX * 1000, max_buffer_size=BUFFER_BYTES_MAX
)

CONNECTIONS_MAX: Final = 2048
"""Of a process. It accepts no more than these: others wait in the kernel's queue, unanswered, which
`service/http/connections.py` prevents."""

BACKLOG: Final = 2048
"""Connections that wait to be accepted."""

STOP_SECONDS_MAX: Final = 1.0
"""How long requests in progress may take to end when an embedded server stops."""

log = structlog.get_logger()


def connections_max() -> int:
    """Return how many connections a process holds: so many that half of its files are left."""
    files, _ = getrlimit(RLIMIT_NOFILE)
    return min(CONNECTIONS_MAX, files // 2)


def check_address(host: str, port: int) -> None:
    """Raise OSError where nobody can listen there.

    Granian sets SO_REUSEPORT, with which two servers can share a port unseen.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


@asynccontextmanager
async def embedded(
    app: Any,  # noqa: ANN401 - any ASGI application
    host: str,
    port: int,
    *,
    interface: Interfaces = Interfaces.ASGI,
    log_level: LogLevels = LogLevels.info,
) -> AsyncGenerator["asyncio.Task[None]"]:
    """Serve inside this process until the context ends; the task ends early if the server fails."""
    server = Server(
        app,
        address=host,
        port=port,
        interface=interface,
        http=HTTP,
        http1_settings=HTTP1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=connections_max(),
        # Not `log_enabled`: that would silence the other servers of this process too.
        log_level=log_level,
        log_dictconfig=dict(logs.GRANIAN_LOGGING),
    )
    serving = asyncio.create_task(server.serve())
    try:
        yield serving
    finally:
        if not serving.done():
            server.stop()
            _, late = await asyncio.wait([serving], timeout=STOP_SECONDS_MAX)
            if late:
                log.warning("requests were cut off")
