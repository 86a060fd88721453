"""A command as process 1 of a container, for which the kernel has no default action of a signal."""

import os
import signal
from types import FrameType


def end_at_stop() -> None:
    """As process 1, end at SIGTERM as any other process does: at once, with a shell's 143.

    Until a command handles it itself: `dev`, `serve` and `worker` do. SIGINT needs nothing: Python
    raises KeyboardInterrupt.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)
