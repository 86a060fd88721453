"""Bytes being received: counted and hashed as they arrive, never held in memory."""

import base64
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from google_crc32c import Checksum


class Incoming:
    """One file being received, removed at the end of its context unless it was moved or linked."""

    def __init__(self, path: Path) -> None:
        """Create the file, which must not exist, with mode 0600."""
        self._path = path
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._crc32c = Checksum()
        self.size = 0

    @property
    def md5(self) -> str:
        """The MD5 of what was received, in base64."""
        return base64.b64encode(self._md5.digest()).decode()

    @property
    def crc32c(self) -> str:
        """The CRC32C of what was received, big-endian, in base64."""
        return base64.b64encode(self._crc32c.digest()).decode()

    def write(self, chunk: bytes) -> None:
        """Append the next bytes."""
        self._file.write(chunk)
        self._md5.update(chunk)
        self._crc32c.update(chunk)
        self.size += len(chunk)

    def move_to(self, path: Path) -> None:
        """Flush the bytes to the disk and rename the file to a path that nobody else uses."""
        self._flush()
        self._path.rename(path)

    def link_to(self, path: Path) -> None:
        """Flush the bytes to the disk and link them into place; raises FileExistsError."""
        self._flush()
        path.hardlink_to(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
        with suppress(FileNotFoundError):
            self._path.unlink()

    def _flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
