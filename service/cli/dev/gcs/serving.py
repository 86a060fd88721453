"""Serving the local store: on loopback, in development, and nowhere else."""

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
    directory: Path, buckets: Collection[str], *, port: int, clock: Clock
) -> AsyncGenerator[LocalStore]:
    """Serve the store on loopback until the context ends.

    Raises:
        LocalStoreError: a port or a directory in use.
        DevFault: the server did not start.

    """
    _refuse_taken(port)
    credentials = local_credentials(directory)
    store = DiskStore(directory / "objects", buckets, clock)
    try:
        app = LocalStoreApp(store, credentials.public_key_of, credentials.token, clock)
        async with embedded_server(app, "the local store", port, log_level=LogLevels.warning):
            log.warning("a document store for development is serving on loopback", port=port)
            yield LocalStore(f"http://{HOST}:{port}", credentials)
    finally:
        store.close()


def _refuse_taken(port: int) -> None:
    # The server would panic, and whatever has the port would be taken for the server.
    try:
        free_port(port)
    except OSError as error:
        raise LocalStoreError(f"the local store cannot listen on port {port}: {error}") from error
