"""The local document store of `claim-ledger dev`, on a port that stays the same."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from service.cli.dev.faults import DevFault
from service.cli.dev.gcs.disk import LocalStoreError
from service.cli.dev.gcs.serving import local_store
from service.cli.dev.storage import HOST, LIVE_BUCKET, PORT_FILE, TEST_BUCKET, storage_directory
from service.core.clock import system_clock


@asynccontextmanager
async def serving_documents(data_dir: Path, service_port: int) -> AsyncGenerator[str]:
    """Serve the store until the context ends; yields its endpoint. Raises DevFault."""
    directory = storage_directory(data_dir)
    directory.mkdir(mode=0o700, exist_ok=True)
    port = _port(directory, service_port)
    try:
        async with local_store(
            directory,
            [LIVE_BUCKET, TEST_BUCKET],
            port=port,
            clock=system_clock,
            production_settings=(),  # refused before anything was started
        ) as store:
            (directory / PORT_FILE).write_text(f"{port}\n")
            yield store.endpoint
    except LocalStoreError as error:
        raise DevFault(str(error)) from error


def _port(directory: Path, service_port: int) -> int:
    """Return the port of the last start, if it is free, so that addresses stay alike."""
    try:
        last = int((directory / PORT_FILE).read_text())
    except (OSError, ValueError):
        last = 0
    if last not in {0, service_port} and _is_free(last):
        return last
    return next(port for port in iter(_free, None) if port != service_port)


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except (OSError, OverflowError):
        return False
    return True


def _free() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return probe.getsockname()[1]
