"""Reading a secret from a file, as Kubernetes and systemd hand them to a service."""

import os
import stat
from typing import Final

BYTES_MAX: Final = 64 * 1024
_FORBIDDEN: Final = stat.S_IWGRP | stat.S_IRWXO


def secret_in(path: str) -> str:
    """Return a file's text, without white space around it.

    Raises ValueError for a file that others can read, or anybody but root and this process's user
    can change. Its group may read: Kubernetes and systemd hand secrets over so. The text is never
    quoted.
    """
    try:
        with open(path, "rb", opener=_opened) as file:
            _check(os.fstat(file.fileno()))
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from error
    if len(content) > BYTES_MAX:
        raise ValueError(f"the file has more than {BYTES_MAX} bytes")
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8") from None
    if not text:
        raise ValueError("the file is empty")
    return text


def _opened(path: str, flags: int) -> int:
    """Open without waiting: a pipe that nobody writes to is refused afterwards."""
    return os.open(path, flags | os.O_NONBLOCK)


def _check(status: os.stat_result) -> None:
    """Check the opened file itself, so that nothing can change in between."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it names no regular file")
    mode = stat.S_IMODE(status.st_mode)
    if mode & _FORBIDDEN:
        raise ValueError(f"the file has mode {mode:04o}; expected 0400, 0440 or 0600")
    if status.st_uid not in {0, os.geteuid()}:
        raise ValueError("the file belongs to another user; expected root or the service's own")
