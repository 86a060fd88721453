"""Filling tables by several processes at once, which take stretches of the log in turn.

Each reads, decodes and checks its stretches concurrently with the others, which is most of the
work. Rows are written in the log's order, by one process at a time.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from service.core.forked_processes import Spares
from service.ledger.rebuild.connecting import shared_lock
from service.ledger.rebuild.filling_process import FillingJob, fill_in
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.row_maker import Recipe, RowMaker
from service.ledger.rebuild.together import together

PART_EVENTS_MIN: Final = 25_000
"""A smaller part is made before a process for it has started."""


class _Rows:
    """The progress of the tables, which determines whose turn it is to write."""

    def __init__(
        self, progress: BuildProgress, recipe: Recipe, count: Callable[[int], object]
    ) -> None:
        self.progress = progress
        self._recipe = recipe
        self._count = count
        self._changed = asyncio.Condition()

    async def turn_of(self, part: int) -> BuildProgress:
        recipe = self._recipe
        async with self._changed:
            await self._changed.wait_for(
                lambda: self.progress.position // recipe.positions % recipe.parts == part
            )
        return self.progress

    async def hold(self, progress: BuildProgress) -> None:
        async with self._changed:
            self._count(progress.position - self.progress.position)
            self.progress = progress
            self._changed.notify_all()
        await asyncio.sleep(0)  # who is next is told before this process decodes anything more


class _TurnsOf:
    """The turns of one part (`Turns`)."""

    def __init__(self, part: int, rows: _Rows) -> None:
        self._part = part
        self._rows = rows

    async def begin(self) -> BuildProgress:
        return await self._rows.turn_of(self._part)

    async def end(self, progress: BuildProgress) -> None:
        await self._rows.hold(progress)


async def fill(
    maker: RowMaker,
    spares: Spares,
    database_url: str,
    target: int,
    count: Callable[[int], object],
    *,
    may_skip: bool,
) -> BuildProgress:
    """Fill empty tables up to a position: this process makes `maker`'s part, `spares` the rest.

    `count` gets the number of positions passed. Where one part fails, or its process ends, the
    others are ended, and have let go of the tables before this raises what failed.
    """
    recipe, binding = maker.recipe, await maker.binding()
    rows = _Rows(BuildProgress(may_skip=may_skip), recipe, count)
    async with shared_lock(maker.writer, recipe.ledger):
        with ExitStack() as ending:
            turns = _TurnsOf(recipe.part, rows)
            work = [maker.take_turns(turns, target, may_skip=may_skip)]
            for number in range(recipe.parts):
                if number == recipe.part:
                    continue
                spare = ending.enter_context(spares.borrowed())
                job = FillingJob(database_url, recipe._replace(part=number), binding)
                turns = _TurnsOf(number, rows)
                work.append(fill_in(spare, job, turns, target, may_skip=may_skip))
            await together(*work)
    return rows.progress
