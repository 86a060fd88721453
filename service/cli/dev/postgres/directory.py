"""The files beside a cluster (lock, password, port), and the path by which the server sees it.

`lock` (the holder's pid) · `password` (mode 0600) · `port` (of the last start) · `postgres.log` ·
`cluster/` (PostgreSQL's own directory, owned by the user that the server runs as).
"""

import fcntl
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final

from service.cli.dev.postgres.faults import EmbeddedPostgresError
from service.cli.dev.postgres.processes import ServerUser
from service.core.files import write_new

_LOG_BYTES_MAX: Final = 16 * 1024 * 1024
_MAGIC_LINKS: Final = Path("/proc/self/fd")


def lock(data_dir: Path) -> IO[str]:
    """Create the directory if need be, and lock it until the returned file is closed.

    flock, because the kernel releases it however we end; Python marks the descriptor
    close-on-exec, so a server that outlives us does not hold it.
    """
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = (data_dir / "lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
    except BlockingIOError as error:
        file.seek(0)
        pid = file.read().strip() or "unknown"
        file.close()
        raise EmbeddedPostgresError(
            f"{data_dir} is in use by another claim-ledger (pid {pid})"
        ) from error
    except BaseException:  # Ctrl-C must not leave the file open
        file.close()
        raise
    return file


def password(data_dir: Path) -> str:
    """Return the owner's password, generated before the first start: 192 bits, URL-safe."""
    path = data_dir / "password"
    if not path.exists():
        if (data_dir / "cluster").exists():
            raise EmbeddedPostgresError(f"{path} is missing, and its cluster cannot be opened")
        replace(path, secrets.token_urlsafe(24))
    return path.read_text().strip()


def recorded_port(data_dir: Path) -> int | None:
    """Return the port of the last start, so that database URLs stay valid over restarts."""
    try:
        return int((data_dir / "port").read_text())
    except (FileNotFoundError, ValueError):
        return None


def replace(path: Path, text: str) -> None:
    """Write a file of mode 0600 by an atomic replace."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    write_new(new, f"{text}\n".encode())
    new.replace(path)


def open_log(path: Path) -> BinaryIO:
    """Open a log to append and to read, mode 0600, setting aside one that grew past 16 MiB."""
    if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab+")


@contextmanager
def seen_by(user: ServerUser | None, folder: Path) -> Generator[tuple[str, tuple[int, ...]]]:
    """Yield the path under which `user` reaches `folder`, and the descriptors to pass on.

    A folder under /root or another 0700 parent is closed to `user`. We open the folder as root
    and name it `/proc/self/fd/<n>`: the kernel follows that link without asking the parents, and
    every process of the server inherits the descriptor. So the data stays where it was asked for,
    and no permissions change.
    """
    if user is None or not _MAGIC_LINKS.is_dir():
        yield str(folder), ()
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"{_MAGIC_LINKS}/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)
