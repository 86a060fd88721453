"""What the processes begin with that `serve` forks: the API's workers."""

import os
import signal
from functools import partial
from typing import Final

from service.core.parent import die_with

_STOP: Final = {signal.SIGTERM}


def prepare_forks() -> None:
    """Make each fork end with this process, and on SIGTERM until it handles that itself.

    It inherits our handlers, and Python forgets in a fork which signals have come: a worker that
    was told to stop at that moment would never hear of it. So the signal waits until it may end
    the fork. One that outlived us would share the port with the next `serve`, unseen.
    """
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, _STOP),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _STOP),
        after_in_child=partial(_begin, os.getpid()),
    )


def _begin(parent: int) -> None:
    die_with(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
