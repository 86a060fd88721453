"""Threads that are shared by owners, none of whom may take them all."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from service.storage.port import ShareFull


@dataclass(frozen=True, slots=True)
class Shares:
    """Each owner's share of some places; those beyond it wait for the owner's own."""

    of_one: int
    _by_owner: WeakValueDictionary[str, asyncio.Semaphore] = field(
        default_factory=WeakValueDictionary[str, asyncio.Semaphore]
    )
    """Those of owners who hold a place, or wait for one."""

    @asynccontextmanager
    async def place(self, owner: str, seconds: float) -> AsyncGenerator[None]:
        """Hold a place of an owner's share; waiting for it and the block take `seconds` at most.

        Raises ShareFull after half of them without a place, and TimeoutError at their end: what
        had a place and no answer had half of them at least, so its owner alone was not the cause.
        """
        share = self._by_owner.setdefault(owner, asyncio.Semaphore(self.of_one))
        ends_at = asyncio.get_running_loop().time() + seconds
        has_place = False
        try:
            async with asyncio.timeout(seconds / 2) as limit, share:
                has_place = True
                limit.reschedule(ends_at)
                yield
        except TimeoutError as error:
            if has_place:
                raise
            raise ShareFull("its owner's other calls hold every place") from error
