"""The settings of the local document store of `claim-ledger dev`."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from service.app.setting import PREFIX
from service.cli.dev.faults import DevFault
from service.cli.dev.gcs.credentials import KEY_FILE
from service.cli.dev.ports import HOST

LIVE_BUCKET: Final = "claim-ledger-live"
TEST_BUCKET: Final = "claim-ledger-test"
OF_PRODUCTION: Final = (
    "LIVE_BUCKET",
    "TEST_BUCKET",
    "STORAGE_KEY_FILE",
    "STORAGE_SERVICE_ACCOUNT",
    "STORAGE_ENDPOINT",
)
"""Settings of a real store. If any is set, no customer's document may be written to a disk here."""

PORT_FILE: Final = "port"
"""The file in the store's directory with the port of the last start."""


def refuse_production(variables: Collection[str]) -> None:
    """Raise DevFault if the environment configures a real store."""
    if names := [PREFIX + name for name in OF_PRODUCTION if PREFIX + name in variables]:
        raise DevFault(
            f"dev keeps documents in a local store, and the environment sets up a real one: "
            f"unset {', '.join(names)}"
        )


def settings(data_dir: Path) -> dict[str, str]:
    """Return the settings with which the service and the team reach the running store."""
    directory = storage_directory(data_dir)
    given = {
        "LIVE_BUCKET": LIVE_BUCKET,
        "TEST_BUCKET": TEST_BUCKET,
        "STORAGE_KEY_FILE": str(directory / KEY_FILE),
        "STORAGE_ENDPOINT": f"http://{HOST}:{(directory / PORT_FILE).read_text().strip()}",
    }
    return {PREFIX + name: value for name, value in given.items()}


def storage_directory(data_dir: Path) -> Path:
    """Return the store's directory."""
    return data_dir.resolve() / "storage"
