"""Commands on a terminal, with a person watching."""

import fcntl
import os
import pty
import select
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.dev_process import PROGRAM, state
from tests.patience import PATIENCE_SECONDS, until
from tests.prepared import run_prepared, start_prepared
from tests.processes import start


def watched(arguments: Sequence[str | Path], env: Mapping[str, str]) -> str:
    """Run a command that must succeed; return what its terminal showed on stderr."""
    ours, theirs = pty.openpty()
    with Path(os.devnull).open("wb") as nobody, os.fdopen(theirs, "wb") as terminal:
        process = start_prepared(arguments, env, nobody, terminal)
    shown = _shown(ours)
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
        done = run_prepared(arguments, env, None, stdin=terminal)
    return done.returncode, " ".join(done.stderr.split())


def interrupted(arguments: Sequence[str | Path], env: Mapping[str, str]) -> tuple[int, str]:
    """Type Ctrl-C, once, where a command asks; return its exit code and what it showed."""
    ours, its = pty.openpty()
    process = start(
        [PROGRAM, *arguments],
        **dict.fromkeys(("stdin", "stdout", "stderr"), its),
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY),  # its keys are signals to whom it has
        env=env,
    )
    os.close(its)
    asked = _shown(ours, end=b"[y/N]: ")
    until(lambda: state(process.pid) == "S")  # Python notices no signal just before it reads
    os.write(ours, b"\3")
    code = process.wait(PATIENCE_SECONDS)
    shown = asked + _shown(ours)
    os.close(ours)
    return code, shown.decode()


def _shown(terminal: int, end: bytes | None = None) -> bytes:
    """Return what a terminal shows, up to some text or to its end."""
    shown = b""
    with suppress(OSError):  # how a terminal ends on Linux
        while select.select([terminal], [], [], PATIENCE_SECONDS)[0] and (
            more := os.read(terminal, 4096)
        ):
            shown += more
            if end is not None and end in shown:
                break
    return shown
