"""The local document store of `claim-ledger dev`: its directory, its port, its settings."""

import socket
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from service.app.setting import PREFIX
from service.cli.dev.faults import DevFault
from service.core.clock import system_clock

HOST: Final = "127.0.0.1"
LIVE_BUCKET: Final = "claim-ledger-live"
TEST_BUCKET: Final = "claim-ledger-test"
OF_PRODUCTION: Final = (
    "LIVE_BUCKET",
    "TEST_BUCKET",
    "STORAGE_KEY_FILE",
    "STORAGE_SERVICE_ACCOUNT",
    "STORAGE_ENDPOINT",
)
"""Settings of a real store. With any of them set no document of a customer may land on a disk."""

_PORT: Final = "port"


def refuse_production(variables: Collection[str]) -> None:
    """Raise DevFault when the environment's variables set up a real store."""
    if names := [PREFIX + name for name in OF_PRODUCTION if PREFIX + name in variables]:
        raise DevFault(
            f"dev keeps documents in a local store, and the environment sets up a real one: "
            f"unset {', '.join(names)}"
        )


@asynccontextmanager
async def serving(data_dir: Path, service_port: int) -> AsyncGenerator[str]:
    """Serve the store until the context ends; answers its endpoint. Raises DevFault."""
    from service.cli.dev.gcs.disk import LocalStoreError
    from service.cli.dev.gcs.serving import local_store

    directory = _directory(data_dir)
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
            (directory / _PORT).write_text(f"{port}\n")
            yield store.endpoint
    except LocalStoreError as error:
        raise DevFault(str(error)) from error


def settings(data_dir: Path) -> dict[str, str]:
    """Return the settings by which service and team reach the store that is being served."""
    from service.cli.dev.gcs.credentials import KEY_FILE

    directory = _directory(data_dir)
    given = {
        "LIVE_BUCKET": LIVE_BUCKET,
        "TEST_BUCKET": TEST_BUCKET,
        "STORAGE_KEY_FILE": str(directory / KEY_FILE),
        "STORAGE_ENDPOINT": f"http://{HOST}:{(directory / _PORT).read_text().strip()}",
    }
    return {PREFIX + name: value for name, value in given.items()}


def _directory(data_dir: Path) -> Path:
    return data_dir.resolve() / "storage"


def _port(directory: Path, service_port: int) -> int:
    """Return the port of the last start, if it is free, so that addresses stay alike."""
    try:
        last = int((directory / _PORT).read_text())
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
