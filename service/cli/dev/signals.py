"""What stops `claim-ledger dev`: SIGINT, SIGTERM, SIGHUP, and the end of a `uv run` around it.

Each begins an orderly shutdown.
"""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PROC: Final = Path("/proc")


class Stopped(Exception):
    """A stop was requested before the service was ready."""


class StopSignals:
    """Records that a stop was requested, and interrupts what is in progress.

    A handler that raised could do so anywhere, even in the middle of an import, whose lock would
    then stay taken. So the handler only sets `requested` and calls `interrupt`; the code that
    starts things calls `check`.
    """

    def __init__(self) -> None:
        """Begin with the interruption of the start-up: it ends the child that is running."""
        self.requested = False
        self._interrupt: Callable[[], object] = _interrupt_children

    def on_stop(self, interrupt: Callable[[], object]) -> None:
        """Call this from now on when a stop is requested; raises Stopped if one was."""
        self._interrupt = interrupt
        self.check()

    def check(self) -> None:
        """Raise Stopped if a stop was requested."""
        if self.requested:
            raise Stopped

    @contextmanager
    def handled(self) -> Generator["StopSignals", None, None]:
        """Handle the signals within the context; an ignored SIGHUP (nohup) stays ignored."""
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            if number != signal.SIGHUP or before[number] != signal.SIG_IGN:
                signal.signal(number, self._handle)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if not self.requested:  # a second Ctrl-C changes nothing: the shutdown is bounded
            self.requested = True
            self._interrupt()


def _interrupt_children() -> None:
    """Send SIGINT to initdb, or to a starting PostgreSQL, so that waiting for it ends."""
    with suppress(OSError):
        for task in (_PROC / "self" / "task").iterdir():
            for pid in (task / "children").read_text().split():
                os.kill(int(pid), signal.SIGINT)


def parent_to_watch() -> int | None:
    """Return a descriptor that becomes readable when our parent ends, if that is `uv run`.

    `uv run` waits for its command, so when it is killed we have to end too. None for any other
    parent (a shell may end before the programs that it started) and outside Linux.
    """
    parent = os.getppid()
    try:
        program = (_PROC / str(parent) / "comm").read_text().strip()
        return os.pidfd_open(parent) if program == "uv" else None
    except OSError:
        return None
