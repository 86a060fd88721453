"""Children that end with their parent, even when it is killed (Linux: prctl(2))."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
# Looked up before any fork: loading a library in a forked child may wait for a lock for ever.
_prctl: Final = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def signal_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return what a child of this process runs first, to be sent `number` when its parent ends.

    The parent is the thread that starts the child. None where the kernel offers no such thing.
    """
    return partial(_be_signalled, _prctl, number, os.getpid()) if _prctl else None


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends: the thread that started it."""
    if _prctl:
        _be_signalled(_prctl, signal.SIGKILL, parent)


def _be_signalled(prctl: Callable[[int, int], int], number: signal.Signals, parent: int) -> None:
    prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:  # killed before the call above: the signal will never come
        os._exit(1)
