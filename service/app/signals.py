"""The end of a process that was told to stop."""

import signal
from typing import Final

_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def ignore_stops() -> None:
    """Ignore that this process is told to stop once more: all that it did has ended.

    As Python ends, which takes a tenth of a second, it takes its handlers away. Another SIGTERM
    would then be how the process ended, instead of with 0.
    """
    for one in _STOPS:
        signal.signal(one, signal.SIG_IGN)
