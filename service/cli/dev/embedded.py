"""A server of Granian's inside this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog
from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from service.core import logs

STOP_SECONDS_MAX: Final = 1.0
"""How long requests under way may take to end when the server stops."""

log = structlog.get_logger()


@asynccontextmanager
async def embedded_server(
    app: Any,  # noqa: ANN401 - any ASGI application
    host: str,
    port: int,
    *,
    log_level: LogLevels = LogLevels.info,
) -> AsyncGenerator["asyncio.Task[None]"]:
    """Serve until the context ends; yields the task, which ends early if the server fails."""
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
        yield serving
    finally:
        if not serving.done():
            server.stop()
            _, late = await asyncio.wait([serving], timeout=STOP_SECONDS_MAX)
            if late:
                log.warning("requests were cut off")
