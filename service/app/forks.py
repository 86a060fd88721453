"""What the processes begin with that `serve` forks: the API's workers."""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Final, TypeVarTuple

from service.core.parent import die_with

_Ts = TypeVarTuple("_Ts")

_STOPS: Final = {signal.SIGTERM, signal.SIGINT}
"""Ctrl-C reaches every process of a terminal, and SIGTERM follows from the one that forked."""


def prepare_forks() -> None:
    """Make each fork end with this process, and at a stop until it handles that itself.

    It inherits our handlers, and Python forgets in a fork which signals have come: a worker that
    was told to stop at that moment would never hear of it. So the signal waits until it may end
    the fork. One that outlived us would share the port with the next `serve`, unseen.
    """
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, _STOPS),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _STOPS),
        after_in_child=partial(_begin, os.getpid()),
    )


def _begin(parent: int) -> None:
    die_with(parent)
    for one in _STOPS:
        signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)


def keep_stops(
    loop: asyncio.AbstractEventLoop, when_late: Callable[[], object], seconds: float
) -> None:
    """Let no stop be lost before the loop runs for good, and tell of one only. It has not run yet.

    `when_late` is called `seconds` after it, where the loop still runs.

    uvloop acts on a signal that came while it did not run when the next one comes. Granian has it
    run for the start and then again for requests: a worker that was told to stop in between served
    until it was killed. Told of more than one, Granian's worker may wait for ever.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    # Here, and not where signals come: the system notes each of them for the loop before it calls
    # any handler, and both have come where Ctrl-C met a worker that starts.
    _tell_once(loop, partial(loop.call_later, seconds, when_late))
    loop.call_soon(_hear_stops, loop)


def _tell_once(loop: asyncio.AbstractEventLoop, also: Callable[[], object]) -> None:
    add, told = loop.add_signal_handler, set[int]()

    def add_once(sig: int, callback: Callable[[*_Ts], object], *args: *_Ts) -> None:
        def tell() -> None:
            if not told:
                told.add(sig)
                also()
                callback(*args)

        add(sig, tell)

    loop.add_signal_handler = add_once


def _hear_stops(loop: asyncio.AbstractEventLoop) -> None:
    """Have the loop look, now that its own handlers are there: each notes that its signal came."""
    noted = {number: signal.getsignal(number) for number in _STOPS}

    def hear(number: int, frame: FrameType | None) -> None:
        note = noted[signal.Signals(number)]
        if callable(note) and not loop.is_closed():
            note(number, frame)
            loop.call_soon_threadsafe(_look)

    for one in _STOPS:
        signal.signal(one, hear)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)


def _look() -> None:
    """Have the running loop look at what its handlers noted, as it does when a byte comes."""
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    os.write(descriptor, b"\0")
