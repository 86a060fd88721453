"""Children that end with their parent, even when it is killed (Linux: prctl(2))."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
# Looked up before any fork: loading a library in a forked child may wait for a lock for ever.
_prctl: Final = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def signal_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return what a child of this process runs first, to be sent `number` when its parent ends.

    The parent is the thread that starts the child. None where the kernel offers no such thing.
    """
    prctl, parent = _prctl, os.getpid()
    if prctl is None:
        return None

    def hook() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # killed before the call above: the signal will never come
            os._exit(1)

    return hook
