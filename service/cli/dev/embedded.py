"""A server inside this process that has answered once before anything rests on it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from granian.log import LogLevels

from service.cli.dev.faults import DevFault
from service.cli.dev.ports import HOST
from service.http.server import embedded


@asynccontextmanager
async def embedded_server(
    app: Any,  # noqa: ANN401 - any ASGI application
    name: str,
    port: int,
    *,
    ready: bytes = b"HTTP/",
    log_level: LogLevels = LogLevels.info,
) -> AsyncGenerator["asyncio.Task[None]"]:
    """Serve on loopback until the context ends; yields the task, which ends if the server fails.

    Yields once `GET /health/ready` has a status line that contains `ready`. Raises DevFault, with
    the server's `name`, if the server ends before that.
    """
    async with embedded(app, HOST, port, log_level=log_level) as serving:
        await _until_ready(name, port, serving, ready)
        yield serving


async def _until_ready(name: str, port: int, serving: "asyncio.Task[None]", ready: bytes) -> None:
    while not serving.done():
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n")
            writer.write(b"Connection: close\r\n\r\n")
            status = await reader.readline()
            writer.close()
            if ready in status:
                return
        await asyncio.sleep(0.01)
    fault = serving.exception() or "see service.log"
    raise DevFault(f"{name} did not start on port {port}: {fault}")
