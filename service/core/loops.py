"""Loops that run beside the requests until they are stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

STOP_SECONDS: Final = 0.5
"""After this a loop that has not stopped is cancelled again."""
STEP_SECONDS: Final = 10.0
"""How long one step of a loop goes on while there is more to do."""


class Loop:
    """A coroutine function as a task that can be stopped, and started again."""

    def __init__(self, name: str, run: Callable[[], Coroutine[object, object, None]]) -> None:
        """`run` continues until it is cancelled; `name` is the task's."""
        self.name: Final = name
        self._run = run
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it."""
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Cancel it until it has ended; do nothing where it was never started.

        A library may swallow a cancellation that meets its own timeout or result.
        """
        task, self._task = self._task, None
        while task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=STOP_SECONDS)


async def repeated(some: Callable[[], Awaitable[int]]) -> int:
    """Repeat what returns how much it did until there is nothing to do, or the step's time is up.

    Returns how much was done.
    """
    time, done = asyncio.get_running_loop().time, 0
    ends_at = time() + STEP_SECONDS
    while time() < ends_at and (more := await some()):
        done += more
    return done
