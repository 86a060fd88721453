"""Serving the local store: on loopback, in development, and nowhere else."""

import ipaddress
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import structlog
from granian.log import LogLevels

from service.cli.dev.embedded import embedded_server
from service.cli.dev.gcs.app import LocalStoreApp
from service.cli.dev.gcs.credentials import LocalCredentials, local_credentials
from service.cli.dev.gcs.disk import DiskStore, LocalStoreError
from service.cli.dev.ports import HOST, free_port
from service.core.clock import Clock

log = structlog.get_logger()


class LocalStore(NamedTuple):
    """A local store that serves at `endpoint`, and the credentials of its clients."""

    endpoint: str
    credentials: LocalCredentials


@asynccontextmanager
async def local_store(
    directory: Path, buckets: Collection[str], *, port: int, clock: Clock, host: str = HOST
) -> AsyncGenerator[LocalStore]:
    """Serve the store until the context ends.

    Raises:
        LocalStoreError: an address off loopback, a port or a directory in use.
        DevFault: the server did not start.

    """
    if not _is_loopback(host):
        raise LocalStoreError(f"the local store listens on loopback only, not on {host}")
    _refuse_taken(host, port)
    credentials = local_credentials(directory)
    store = DiskStore(directory / "objects", buckets, clock)
    try:
        app = LocalStoreApp(store, credentials.public_key_of, credentials.token, clock)
        async with embedded_server(app, "the local store", host, port, log_level=LogLevels.warning):
            log.warning("a document store for development is serving on loopback", port=port)
            yield LocalStore(f"http://{f'[{host}]' if ':' in host else host}:{port}", credentials)
    finally:
        store.close()


def _refuse_taken(host: str, port: int) -> None:
    # The server would panic, and whatever has the port would be taken for the server.
    try:
        free_port(port, host)
    except OSError as error:
        raise LocalStoreError(f"the local store cannot listen on port {port}: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may resolve to anything
