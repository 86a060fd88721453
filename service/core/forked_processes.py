"""Processes that are forked before a command begins, for work that it may do side by side.

A fork takes some milliseconds; a process that starts anew imports everything once more, a quarter
of a second. It is made while this process has no event loop, no other thread, no connection and no
secret: what a fork would find half done, or share.
"""

import asyncio
import gc
import os
import signal
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from socket import socketpair
from typing import Any, Final, Never, Self

from service.core.parent import die_with

Work = Callable[[Pipe, Any], object]
"""What a spare process does: it is given its end of the pipe, and what it was asked."""


class SpareGone(Exception):
    """A spare process has ended before its work was done."""


class Spare:
    """A process that does what it is asked, one thing after the other."""

    def __init__(self, pid: int, pipe: Pipe) -> None:
        """Only `forked` makes one."""
        self.pid = pid
        self.pipe = pipe
        self.is_idle = True
        """Whoever asked it has its last answer. One that is not is ended when it comes back."""
        self.has_ended = False

    def ask(self, work: Work, asked: object) -> None:
        """Make it do a piece of work, at this process's priority. Raises SpareGone.

        `work` is a function of a module, as pickle wants it.
        """
        self.is_idle = False
        self.send((work, asked, os.getpriority(os.PRIO_PROCESS, 0)))

    def send(self, message: object) -> None:
        """Send its work something more; raises SpareGone."""
        try:
            self.pipe.send(message)
        except OSError as error:
            raise SpareGone from error

    async def receive(self) -> Any:  # noqa: ANN401 - what its work sends
        """Return what its work sends next; raises SpareGone."""
        await until_readable(self.pipe.fileno())
        try:
            return self.pipe.recv()
        except (EOFError, OSError) as error:
            raise SpareGone from error

    def end(self) -> None:
        """End the process, and wait until it is gone."""
        self.pipe.close()
        # Where SIGCHLD is ignored, one that has ended has left nothing to kill or to wait for.
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.has_ended = True


class Spares:
    """So many processes, of which some may be at work. Ctrl-C is not for them.

    They end with this process, however that ends.
    """

    def __init__(self, count: int) -> None:
        """Fork them, or as many of them as the system has room for."""
        self._idle: list[Spare] = []
        with suppress(OSError):
            for _ in range(count):
                self._idle.append(forked([one.pipe for one in self._idle]))

    def __enter__(self) -> Self:
        """Return the processes; they are ended at the block's end."""
        return self

    def __exit__(self, *_raised: object) -> None:
        """End all that are idle: others are with whoever borrowed them."""
        while self._idle:
            self._idle.pop().end()

    def __len__(self) -> int:
        """Return how many are idle."""
        return len(self._idle)

    @contextmanager
    def borrowed(self) -> Generator[Spare]:
        """Lend an idle one; it comes back if it is idle at the block's end, or else is ended."""
        spare = self._idle.pop()
        try:
            yield spare
        finally:
            if spare.is_idle:
                self._idle.append(spare)
            else:
                spare.end()


NO_SPARES: Final = Spares(0)
"""For whoever works alone."""


def forked(others: Iterable[Pipe] = ()) -> Spare:
    """Fork a process, which holds no end of the `others`' pipes: of those forked before it."""
    there, here = socketpair()
    ours, theirs = Pipe(here.detach()), Pipe(there.detach())
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _serve(parent, theirs, [ours, *others])
    theirs.close()
    return Spare(pid, ours)


def _serve(parent: int, pipe: Pipe, others: Iterable[Pipe]) -> Never:
    """Do what is asked until nobody can ask any more; never return to the parent's frames."""
    status = 1
    try:
        die_with(parent)
        os.setpgid(0, 0)
        gc.freeze()  # what is there is the parent's, and shared with it until it is touched
        for one in others:
            one.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        with suppress(EOFError, OSError):
            while True:
                work, asked, niceness = pipe.recv()
                os.setpriority(os.PRIO_PROCESS, 0, niceness)
                work(pipe, asked)
        status = 0
    except BaseException:  # noqa: BLE001 - told where a command's own faults are, and it ends
        traceback.print_exc()
    finally:
        os._exit(status)


async def until_readable(descriptor: int) -> None:
    """Wait until there is something to read, or the other end has been closed."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(descriptor, lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)
