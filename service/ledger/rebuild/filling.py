"""Filling tables by several processes at once, each of which makes the rows of its own streams."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from service.core.spares import Spares
from service.ledger.rebuild.connecting import shared_lock
from service.ledger.rebuild.filling_process import FillingJob, fill_in
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.row_maker import RowMaker
from service.ledger.rebuild.together import together

PART_EVENTS_MIN: Final = 25_000
"""A smaller part is made before a process for it has started."""


class _Least:
    """Counts the positions that all parts have passed, for a progress bar."""

    def __init__(self, parts: int, count: Callable[[int], object]) -> None:
        self._at = [0] * parts
        self._told = 0
        self._count = count

    def of(self, part: int) -> Callable[[int], None]:
        """Return what takes the position that a part has come to."""

        def advance(position: int) -> None:
            self._at[part] = position
            self._count(min(self._at) - self._told)
            self._told = min(self._at)

        return advance


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
    recipe, begin = maker.recipe, BuildProgress(may_skip=may_skip)
    binding, least = await maker.binding(), _Least(recipe.parts, count)
    async with shared_lock(maker.writer, recipe.ledger):
        with ExitStack() as ending:
            work = [maker.load(begin, target, least.of(recipe.part))]
            for number in range(recipe.parts):
                if number == recipe.part:
                    continue
                spare = ending.enter_context(spares.borrowed())
                job = FillingJob(database_url, recipe._replace(part=number), binding)
                work.append(fill_in(spare, job, begin, target, least.of(number)))
            return BuildProgress.joined(await together(*work))
