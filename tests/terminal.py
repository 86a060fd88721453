"""Commands of the installed program on a terminal, with a person watching."""

import os
import pty
import select
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.dev_process import PROGRAM
from tests.patience import PATIENCE_SECONDS
from tests.processes import bound, start


def watched(arguments: Sequence[str | Path], env: Mapping[str, str]) -> str:
    """Run a command that must succeed; return what its terminal showed on stderr."""
    ours, theirs = pty.openpty()
    process = start([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how a terminal ends on Linux
        while select.select([ours], [], [], PATIENCE_SECONDS)[0] and (more := os.read(ours, 4096)):
            shown += more
    os.close(ours)
    assert process.wait(PATIENCE_SECONDS) == 0, shown
    return shown.decode()


def answered(
    arguments: Sequence[str | Path], typed: str, env: Mapping[str, str]
) -> tuple[int, str]:
    """Run a command that asks; return its exit code, and its question as one line."""
    ours, its = pty.openpty()
    with os.fdopen(ours, "w") as person, os.fdopen(its) as terminal:
        person.write(typed)
        person.flush()
        done = subprocess.run(
            bound([PROGRAM, *arguments]),
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            env=env,
        )
    return done.returncode, " ".join(done.stderr.split())
