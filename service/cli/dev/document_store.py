"""The local document store of `claim-ledger dev`, on a port that stays the same."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from service.cli.dev.gcs.serving import local_store
from service.cli.dev.ports import free_port
from service.cli.dev.storage import LIVE_BUCKET, PORT_FILE, TEST_BUCKET, storage_directory
from service.core.clock import system_clock


@asynccontextmanager
async def serving_documents(data_dir: Path, service_port: int) -> AsyncGenerator[str]:
    """Serve the store until the context ends; yields its endpoint. Raises DevFault."""
    directory = storage_directory(data_dir)
    directory.mkdir(mode=0o700, exist_ok=True)
    port = _port(directory, service_port)
    async with local_store(
        directory,
        [LIVE_BUCKET, TEST_BUCKET],
        port=port,
        clock=system_clock,
        production_settings=(),  # refused before anything was started
    ) as store:
        (directory / PORT_FILE).write_text(f"{port}\n")
        yield store.endpoint


def _port(directory: Path, service_port: int) -> int:
    """Return the port of the last start, if it is free, so that addresses stay alike."""
    with suppress(OSError, ValueError):
        last = int((directory / PORT_FILE).read_text())
        if last != service_port:
            return free_port(last)
    return next(port for port in iter(free_port, None) if port != service_port)
