"""Serving the local store: on loopback, in development, and nowhere else."""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from service.cli.dev.gcs.app import LocalStoreApp
from service.cli.dev.gcs.credentials import LocalCredentials, local_credentials
from service.cli.dev.gcs.disk import DiskStore, LocalStoreError
from service.core import logs
from service.core.clock import Clock

HOST: Final = "127.0.0.1"
STOP_SECONDS_MAX: Final = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A local store that answers at `endpoint`, and what its clients sign and read with."""

    endpoint: str
    credentials: LocalCredentials


@asynccontextmanager
async def local_store(
    directory: Path,
    buckets: Collection[str],
    *,
    port: int,
    clock: Clock,
    production_settings: Collection[str],
    host: str = HOST,
) -> AsyncGenerator[LocalStore]:
    """Serve the store until the context ends.

    `production_settings` are the names of settings of a real bucket or of real credentials that
    are set: with any of them nothing starts, so that no document of a customer lands on a disk.

    Raises:
        LocalStoreError: that, an address that is not loopback, a port or a directory in use.

    """
    _refuse_production(host, production_settings)
    _refuse_taken(host, port)
    credentials = local_credentials(directory)
    store = DiskStore(directory / "objects", buckets, clock)
    try:
        app = LocalStoreApp(store, credentials.public_key_of, credentials.token, clock)
        server = Server(
            app,
            address=host,
            port=port,
            interface=Interfaces.ASGI,
            # Not `log_enabled`: that would silence the other servers of this process too.
            log_level=LogLevels.warning,
            log_dictconfig=dict(logs.GRANIAN_LOGGING),
        )
        serving = asyncio.create_task(server.serve())
        try:
            await _answers(host, port, serving)
            log.warning("a document store for development is serving on loopback", port=port)
            yield LocalStore(f"http://{f'[{host}]' if ':' in host else host}:{port}", credentials)
        finally:
            await _stop(server, serving)
    finally:
        store.close()


def _refuse_production(host: str, production_settings: Collection[str]) -> None:
    if production_settings:
        names = ", ".join(sorted(production_settings))
        raise LocalStoreError(f"the local store is for development; production is set up: {names}")
    if not _is_loopback(host):
        raise LocalStoreError(f"the local store listens on loopback only, not on {host}")


def _refuse_taken(host: str, port: int) -> None:
    # The server would panic, and whoever has the port would be taken for the server.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise LocalStoreError(f"the local store cannot listen on port {port}: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may resolve to anything


async def _answers(host: str, port: int, serving: "asyncio.Task[None]") -> None:
    """Wait until it accepts connections; raises LocalStoreError when it ends instead."""
    while not serving.done():
        with suppress(OSError):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return
        await asyncio.sleep(0.01)
    raise LocalStoreError(f"the local store did not start on port {port}: {serving.exception()}")


async def _stop(server: Server, serving: "asyncio.Task[None]") -> None:
    if not serving.done():
        server.stop()
        await asyncio.wait([serving], timeout=STOP_SECONDS_MAX)
