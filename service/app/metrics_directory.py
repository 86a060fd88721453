"""Where the processes of `serve` keep their metrics: in a directory in memory, if there is room.

They count in files that they map. Where nothing is left for a page of one, on a disk or in memory,
the kernel kills the process that counts something new (SIGBUS), although the API needs neither. So
each reserves their room before it counts (`service/operations/metrics.py`).
"""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

import structlog

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory with a random name is made in it
ROOM_BYTES_MIN: Final = 16 << 20
"""Of memory that is free at the start: a process reserves 1.6 MiB of it."""
LEFT_MAX: Final = 100
"""Directories of killed processes that one start removes."""

_PREFIX: Final = "claim-ledger-metrics-"
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

log = structlog.get_logger()


@contextmanager
def metrics_directory() -> Generator[str]:
    """Make the directory, and remove it at the end: among temporary files if not in memory.

    What earlier processes left in memory when they were killed is removed first.
    """
    with ExitStack() as stack:
        try:
            directory = stack.enter_context(_in_memory())
        except OSError as error:
            log.warning("metrics are kept on disk", error_type=type(error).__name__)
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX))
        yield directory


@contextmanager
def _in_memory() -> Generator[str]:
    """Make a directory in memory, locked until this process and its forks have ended."""
    _remove_left()
    if shutil.disk_usage(SHARED_MEMORY).free < ROOM_BYTES_MIN:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=SHARED_MEMORY) as directory:
        lock = os.open(directory, _OPEN)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.fstat(lock).st_nlink:  # removed before it was locked, by another start
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            yield directory
        finally:
            os.close(lock)


def _remove_left() -> None:
    """Remove directories of ours that nobody has locked."""
    ours = (entry.path for entry in os.scandir(SHARED_MEMORY) if _is_ours(entry))
    for path in islice(ours, LEFT_MAX):
        with suppress(OSError):
            lock = os.open(path, _OPEN)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)


def _is_ours(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):  # another start has removed it
        user = entry.stat(follow_symlinks=False).st_uid
        return entry.name.startswith(_PREFIX) and user == os.geteuid()
    return False
