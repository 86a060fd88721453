"""A limit for the size of files that are written: as on a disk that is full by then."""

import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Let this process, and those that it starts, write no file of more than `size` bytes.

    Nor do they write bytecode meanwhile: Python would write as much of a module's as there is room
    for, and each later process that imports the module would fail.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
