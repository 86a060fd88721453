"""What the service holds while a run goes on: memory, open files, PostgreSQL's backends."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

from tests.bench.processes import megabytes, open_files
from tests.soak.accounts import value
from tests.soak.kills import Supervised

BACKENDS = "select count(*) from pg_stat_activity where application_name like 'claim-ledger %'"


class Held(NamedTuple):
    """The most that one of the service's processes has, and the backends of all."""

    megabytes: float
    open_files: int
    backends: int


@dataclass
class Watch:
    """Looks at a service again and again."""

    service: Supervised
    url: str
    pause_seconds: float
    seen: list[Held] = field(default_factory=list[Held])

    async def run(self, over: asyncio.Event) -> None:
        """Look until it is over. What is away then, or ends meanwhile, is looked at later."""
        while not over.is_set():
            with suppress(OSError, ValueError, psycopg.OperationalError):
                await self.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), self.pause_seconds)

    async def look(self) -> Held:
        """Look once. Raises OSError, ValueError or OperationalError where something is away."""
        pids = self.service.pids()
        found = Held(
            max(megabytes(one, peak=False) for one in pids),
            max(open_files(one) for one in pids),
            await asyncio.to_thread(value, self.url, BACKENDS),
        )
        self.seen.append(found)
        return found

    def compared(self, **moments: Held) -> dict[str, Any]:
        """Return what was held at some moments, and the most of all that was seen."""
        return {
            name: {moment: getattr(held, name) for moment, held in moments.items()}
            | {"most": max(getattr(held, name) for held in self.seen)}
            for name in Held._fields
        }
