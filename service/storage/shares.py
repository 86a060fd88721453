"""Threads that are shared by owners, none of whom may take them all."""

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary


@dataclass(frozen=True, slots=True)
class Shares:
    """Each owner's share of some places; those beyond it wait for the owner's own."""

    of_one: int
    _by_owner: WeakValueDictionary[str, asyncio.Semaphore] = field(
        default_factory=WeakValueDictionary[str, asyncio.Semaphore]
    )
    """Those of owners who hold a place, or wait for one."""

    def of(self, owner: str) -> asyncio.Semaphore:
        """Return an owner's share, of which the caller takes a place."""
        return self._by_owner.setdefault(owner, asyncio.Semaphore(self.of_one))
