"""One run of something for all who ask for it at about the same time."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

from service.core.visitors import for_everybody

_T = TypeVar("_T")


class Shared(Generic[_T]):
    """The result of one run of `make`, for all who ask while it runs and as long as it is fresh."""

    def __init__(
        self,
        make: Callable[[], Coroutine[object, object, _T]],
        fresh_seconds: Callable[[float], float] = lambda _took: 0.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fresh_seconds` is given what a run took; a failed run is never fresh."""
        self._make = make
        self._fresh_seconds = fresh_seconds
        self._monotonic = monotonic
        self._running: asyncio.Task[_T] | None = None
        self._made: _T | None = None
        self._fresh_until = -1.0

    async def get(self) -> _T:
        """Return the result; raises what the run raised."""
        if self._made is not None and self._monotonic() < self._fresh_until:
            return self._made
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), context=for_everybody())
            self._running.add_done_callback(retrieved)
        return await asyncio.shield(self._running)

    async def _run(self) -> _T:
        begun = self._monotonic()
        made = await self._make()
        ended = self._monotonic()
        self._made, self._fresh_until = made, ended + self._fresh_seconds(ended - begun)
        return made


def retrieved(task: "asyncio.Task[_T]") -> None:
    """Take note of an error that nobody waited for any more, which asyncio would log otherwise."""
    if not task.cancelled():
        task.exception()
