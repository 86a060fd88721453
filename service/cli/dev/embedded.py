"""A Granian server inside this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import structlog
from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from service.cli.dev.faults import DevFault
from service.core import logs

STOP_SECONDS_MAX: Final = 1.0
"""How long requests in progress may take to end when the server stops."""

log = structlog.get_logger()


@asynccontextmanager
async def embedded_server(
    app: Any,  # noqa: ANN401 - any ASGI application
    name: str,
    host: str,
    port: int,
    *,
    ready: bytes = b"HTTP/",
    log_level: LogLevels = LogLevels.info,
) -> AsyncGenerator["asyncio.Task[None]"]:
    """Serve until the context ends; yields the task, which ends early if the server fails.

    Yields once `GET /health/ready` has a status line that contains `ready`. Raises DevFault, with
    the server's `name`, if the server ends before that.
    """
    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        # Not `log_enabled`: that would silence the other servers of this process too.
        log_level=log_level,
        log_dictconfig=dict(logs.GRANIAN_LOGGING),
    )
    serving = asyncio.create_task(server.serve())
    try:
        await _until_ready(name, host, port, serving, ready)
        yield serving
    finally:
        if not serving.done():
            server.stop()
            _, late = await asyncio.wait([serving], timeout=STOP_SECONDS_MAX)
            if late:
                log.warning("requests were cut off")


async def _until_ready(
    name: str, host: str, port: int, serving: "asyncio.Task[None]", ready: bytes
) -> None:
    while not serving.done():
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n")
            writer.write(b"Connection: close\r\n\r\n")
            status = await reader.readline()
            writer.close()
            if ready in status:
                return
        await asyncio.sleep(0.01)
    fault = serving.exception() or "see service.log"
    raise DevFault(f"{name} did not start on port {port}: {fault}")
