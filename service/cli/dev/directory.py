"""The directory of a dev: who holds it, and the log in it."""

import os
import time
from pathlib import Path
from typing import IO, BinaryIO, Final

from service.cli.dev.postgres.directory import lock
from service.cli.dev.postgres.faults import EmbeddedPostgresError, describe
from service.cli.dev.signals import StopSignals

LOG: Final = "service.log"
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
LOCK_SECONDS_MAX: Final = 2.0
"""How long an earlier dev, whose `uv run` was killed, may take to end."""


def hold(data_dir: Path, signals: StopSignals) -> IO[str]:
    """Hold the directory until the answered file is closed; it is made if need be.

    Raises EmbeddedPostgresError when another dev holds it or it is not writable.
    """
    deadline = time.monotonic() + LOCK_SECONDS_MAX
    while True:
        try:
            return lock(data_dir)
        except OSError as error:
            raise EmbeddedPostgresError(describe(error, data_dir)) from error
        except EmbeddedPostgresError:
            if time.monotonic() > deadline:
                raise
            signals.check()
            time.sleep(0.05)


def open_log(data_dir: Path) -> BinaryIO:
    """Open the service's log to append, mode 0600, setting aside one that grew too long."""
    path = data_dir / LOG
    try:
        if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    except OSError as error:
        raise EmbeddedPostgresError(describe(error, data_dir)) from error
