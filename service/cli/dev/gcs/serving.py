"""Serving the local store: on loopback, in development, and nowhere else."""

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
from granian.log import LogLevels

from service.cli.dev.embedded import embedded_server
from service.cli.dev.gcs.app import LocalStoreApp
from service.cli.dev.gcs.credentials import LocalCredentials, local_credentials
from service.cli.dev.gcs.disk import DiskStore, LocalStoreError
from service.cli.dev.ports import HOST, free_port
from service.core.clock import Clock

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
        async with embedded_server(app, host, port, log_level=LogLevels.warning) as serving:
            await _answers(host, port, serving)
            log.warning("a document store for development is serving on loopback", port=port)
            yield LocalStore(f"http://{f'[{host}]' if ':' in host else host}:{port}", credentials)
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
    try:
        free_port(port, host)
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
