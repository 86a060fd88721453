"""A disk that is small enough to be filled."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return an empty directory on a disk of its own, of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mounting, check=False).returncode:
        pytest.skip("mounting a small file system is root's way")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> None:
    """Fill the disk of a directory to its last page."""
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass
