"""Threads for calls that may hang for good, as those to another machine's disk do."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")


class DaemonThreads:
    """A few threads for which nobody waits at the end of the process.

    Those of an executor are waited for: one call that hangs keeps the process from ending.
    """

    def __init__(self, name: str, at_once: int) -> None:
        """`at_once` is how many calls may run; `name` is their threads'."""
        self._name = name
        self._places = asyncio.Semaphore(at_once)

    async def run(self, call: Callable[[], _T]) -> _T:
        """Run a call as soon as a thread is free. Cancelled, it goes on, and has its thread."""
        loop, outcome = asyncio.get_running_loop(), Future[_T]()
        outcome.set_running_or_notify_cancel()

        def run() -> None:
            try:
                outcome.set_result(call())
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                outcome.set_exception(error)
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._places.release)

        await self._places.acquire()
        try:
            threading.Thread(target=run, name=self._name, daemon=True).start()
        except RuntimeError:  # the system has none left
            self._places.release()
            raise
        return await asyncio.wrap_future(outcome)
