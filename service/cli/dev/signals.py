"""What ends `claim-ledger dev`: SIGINT, SIGTERM and SIGHUP, and the end of a `uv run` around it.

Each begins one orderly stop.
"""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

_ASKED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PROC: Final = Path("/proc")


class Stopped(Exception):
    """We were asked to stop before the service answered."""


class StopSignals:
    """Remembers that somebody asked us to stop, and hurries what is under way.

    A handler that raises would do so anywhere, in the middle of an import too, whose lock then
    stays taken: so it notes and wakes, and whoever starts things looks at `check`.
    """

    def __init__(self) -> None:
        """Begin in the state of starting: what hurries it is an end of the child in work."""
        self.asked = False
        self._hurry: Callable[[], object] = _interrupt_children

    def then(self, hurry: Callable[[], object]) -> None:
        """From now on call this when somebody asks; raises Stopped if somebody has."""
        self._hurry = hurry
        self.check()

    def check(self) -> None:
        """Raise Stopped if somebody asked."""
        if self.asked:
            raise Stopped

    @contextmanager
    def heard(self) -> Generator["StopSignals", None, None]:
        """Listen; SIGHUP is left to whoever had it ignored (nohup)."""
        before = {number: signal.getsignal(number) for number in _ASKED}
        for number in _ASKED:
            if number != signal.SIGHUP or before[number] != signal.SIG_IGN:
                signal.signal(number, self._hear)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if not self.asked:  # the second Ctrl-C changes nothing: stopping is bounded
            self.asked = True
            self._hurry()


def _interrupt_children() -> None:
    """Send SIGINT to initdb, or to a PostgreSQL that still starts: whoever waits for it goes on."""
    with suppress(OSError):
        for task in (_PROC / "self" / "task").iterdir():
            for pid in (task / "children").read_text().split():
                os.kill(int(pid), signal.SIGINT)


def parent_to_watch() -> int | None:
    """Return a descriptor that becomes readable when our parent ends, if that is `uv run`.

    `uv run` waits for its command, and when it is killed we have to end too. None for any other
    parent (a shell may end before what it started) and outside Linux.
    """
    parent = os.getppid()
    try:
        program = (_PROC / str(parent) / "comm").read_text().strip()
        return os.pidfd_open(parent) if program == "uv" else None
    except OSError:
        return None
