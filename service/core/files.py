"""Files and folders whose content is on the disk once a call returns."""

import os
from pathlib import Path


def write_new(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 and flush it; raises FileExistsError when it is there."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush a folder's entries: a file whose name is lost is lost."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
