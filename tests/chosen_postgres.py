"""The build of PostgreSQL that a run of the tests is on."""

from pathlib import Path
from typing import Final

import pytest

from service.cli.dev.postgres import debian_bin_dir

WHEEL: Final = "18"
DEBIAN: Final = "15"


def bin_dir_of(config: pytest.Config) -> Path | None:
    """Return the folder of the programs that `--postgres` names; None for the wheel's."""
    chosen = config.getoption("--postgres")
    if chosen == WHEEL:
        return None
    bin_dir = debian_bin_dir() if chosen == DEBIAN else Path(chosen)
    assert bin_dir is not None, "Debian's PostgreSQL is not installed"
    return bin_dir
