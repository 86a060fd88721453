"""Serving the endpoints of one mode: each by a task of its own, so that none waits for another."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from service.ledger.database import LedgerError, Row
from service.ledger.queue_runner import QueueRunner
from service.ledger.sql import queries
from service.webhooks.deliveries import OPEN_MAX, Deliveries, DeliveryParts
from service.webhooks.waits import RETRIES

ENDPOINTS_AT_ONCE_MAX: Final = 64
"""Endpoints that a process serves at a time, each for some seconds before it is another's turn."""
LOOK_SECONDS_FREE: Final = 0.05
"""A look for what is due that takes longer, among thousands of endpoints, a pause follows."""
PAUSE_FOR_A_LOOK: Final = 9.0
"""So many times as long as the look: it takes a tenth of a connection's time at most."""
LOG_KEPT: Final = timedelta(days=30)
FORGET_SECONDS: Final = 3600.0
LOG_ROWS_MAX: Final = 1000
"""Of old deliveries that are forgotten at once."""

_SQL = queries("service.webhooks")

log = structlog.get_logger()


@dataclass(slots=True)
class Dispatcher:
    """Finds endpoints that something is due for, and serves them.

    `on_served` is called when something was attempted: there may be more.
    """

    parts: DeliveryParts
    on_served: Callable[[], None] = lambda: None
    _tasks: dict[str, asyncio.Task[int]] = field(
        default_factory=dict[str, asyncio.Task[int]], init=False
    )
    _served: int = field(default=0, init=False)
    _looks_at: float = field(default=0.0, init=False)
    _forgets_at: float = field(default=0.0, init=False)

    async def step(self) -> int:
        """Begin to serve endpoints; return how many deliveries were attempted since before."""
        await self._forget()
        done, self._served = self._served, 0
        free = ENDPOINTS_AT_ONCE_MAX - len(self._tasks)
        if free <= 0:
            return done
        for row in await self._due(free):
            endpoint_id = row["endpoint_id"]
            work = Deliveries(self.parts, endpoint_id, row["partner_id"])
            task = asyncio.create_task(QueueRunner(work, self.parts.clock, RETRIES).step())
            self._tasks[endpoint_id] = task
            task.add_done_callback(lambda task, one=endpoint_id: self._ended(one, task))
        return done

    async def _due(self, most: int) -> list[Row]:
        """Return endpoints that something is due for; each is looked at, so not all the time."""
        time = asyncio.get_running_loop().time
        await asyncio.sleep(self._looks_at - time())
        others = [*self._tasks, *await self.parts.targets.closed()]
        began = time()
        rows = await self.parts.pool.fetch(_SQL.due, self.parts.clock(), others, OPEN_MAX, most)
        took = time() - began
        pause = took * PAUSE_FOR_A_LOOK if took > LOOK_SECONDS_FREE else 0.0
        self._looks_at = time() + pause
        return rows

    def _ended(self, endpoint_id: str, task: asyncio.Task[int]) -> None:
        del self._tasks[endpoint_id]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._served += task.result()
            if task.result():  # else it would be looked at again and again
                self.on_served()
        elif isinstance(error, LedgerError):
            log.warning("webhooks wait", error_type=type(error.__cause__ or error).__name__)
        else:
            log.error("webhooks failed", exc_info=error)

    @property
    def is_busy(self) -> bool:
        """Whether anything is being served."""
        return bool(self._tasks)

    async def idle(self) -> None:
        """Return when nothing is being served."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def stop(self) -> None:
        """End what is being served: it is due again when its lease ends."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _forget(self) -> None:
        """Delete old deliveries from the log, a bounded number at a time, every hour."""
        time = asyncio.get_running_loop().time()
        if time < self._forgets_at:
            return
        row = await self.parts.pool.fetchrow(
            _SQL.log_delete, self.parts.clock(), LOG_KEPT, LOG_ROWS_MAX
        )
        if row is None or row["deleted"] < LOG_ROWS_MAX:
            self._forgets_at = time + FORGET_SECONDS
