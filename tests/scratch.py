"""Where a test run keeps its files: in memory, where there is room.

Hundreds of databases are created and dropped, and hundreds of processes started: in memory, and
with modules compiled once, both take a third of the time. Whoever sets TMPDIR chooses for himself.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of the run is made in it
FREE_BYTES_MIN: Final = 8 * 1000**3
_NAME: Final = "claim-ledger-tests-"


@contextmanager
def scratch_directory() -> Iterator[None]:
    """Have this process and its children keep their temporary files in a directory of the run."""
    if "TMPDIR" in os.environ or not _has_room():
        yield
        return
    directory = MEMORY / f"{_NAME}{os.getpid()}"
    directory.mkdir()
    directory.chmod(0o755)  # PostgreSQL runs as another user where the tests run as root
    os.environ["TMPDIR"] = tempfile.tempdir = str(directory)
    _write_bytecode()
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _has_room() -> bool:
    if not MEMORY.is_dir():
        return False
    for left in MEMORY.glob(f"{_NAME}*"):
        if not Path("/proc", left.name.removeprefix(_NAME)).exists():  # its run was killed
            shutil.rmtree(left, ignore_errors=True)
    return shutil.disk_usage(MEMORY).free >= FREE_BYTES_MIN


def _write_bytecode() -> None:
    """Let each module be compiled once, also where the environment asks for no bytecode.

    Beside the modules, where git ignores it and what was compiled before is found.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
