"""Whose child we are: `uv run` waits for its command, and when it is killed we have to end too."""

import os
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")


def parent_to_watch() -> int | None:
    """Return a descriptor that becomes readable when our parent ends, if that is `uv run`.

    None for any other parent (a shell may end before what it started) and outside Linux.
    """
    parent = os.getppid()
    try:
        program = (_PROC / str(parent) / "comm").read_text().strip()
        return os.pidfd_open(parent) if program == "uv" else None
    except OSError:
        return None
