"""A part of a read model's rows, made in a separate process."""

import asyncio
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg

from service.core.forked_processes import Spare, SpareGone, until_readable
from service.ledger.binding import Binding
from service.ledger.database import LedgerError
from service.ledger.encryption import DataKey
from service.ledger.events import Unreadable
from service.ledger.rebuild.connecting import CLOSED, connected
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.row_maker import Recipe, RowMaker, Turns
from service.ledger.sql import queries

_GONE: Final = "a process of it has ended. Nothing was swapped; begin again"
_SQL = queries("service.ledger.rebuild")


class FillingJob(NamedTuple):
    """The input of a process: the database, a recipe, and how to recognise our events."""

    database_url: str
    recipe: Recipe
    binding: Binding


class _Ready(NamedTuple):
    """The process waits for permission to continue.

    It holds its share of the lock, or has a stretch decoded and waits for its turn.
    """


async def fill_in(
    spare: Spare, job: FillingJob, turns: Turns, target: int, *, may_skip: bool
) -> None:
    """Let a spare process apply its stretches of the log, as `RowMaker.take_turns` does.

    Both sides exchange only events that were skipped since the last message, because there may be
    many. Raises RebuildRefused or Unreadable.
    """
    known = 0
    try:
        spare.ask(work, job)
        await _answer(spare)
        spare.send((target, may_skip))
        while await _answer(spare) is not None:
            progress = await turns.begin()
            spare.send(progress.since(known))
            progress = progress.joined(await _answer(spare))
            known = len(progress.skipped)
            await turns.end(progress)
    except SpareGone as error:
        raise RebuildRefused(_GONE) from error
    spare.is_idle = True


async def _answer(spare: Spare) -> Any:  # noqa: ANN401 - what is next
    """Return what a process sends next; raise what went wrong there."""
    found = await spare.receive()
    if isinstance(found, Exception):
        raise found
    return found


class _TurnsToldBy:
    """The turns of this process's part (`Turns`), as the process that started it announces them."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._progress = BuildProgress()

    async def begin(self) -> BuildProgress:
        self._pipe.send(_Ready())
        await until_readable(self._pipe.fileno())
        self._progress = self._progress.joined(self._pipe.recv())
        return self._progress

    async def end(self, progress: BuildProgress) -> None:
        self._pipe.send(progress.since(len(self._progress.skipped)))
        self._progress = progress


def work(pipe: Pipe, job: FillingJob) -> None:
    """Do a job that the process at the other end of a pipe asks for."""
    pipe.send(asyncio.run(_fault(pipe, job)))


async def _fault(pipe: Pipe, job: FillingJob) -> Exception | None:
    """Fill the job's part; return what went wrong."""
    try:
        await _fill(pipe, job)
    except (RebuildRefused, Unreadable) as error:
        return error
    except (LedgerError, asyncpg.PostgresError, *CLOSED, OSError) as error:
        fault = f"a process of it could not read or write its part: {type(error).__name__}"
        return RebuildRefused(f"{fault}. Nothing was swapped; begin again")
    return None


async def _fill(pipe: Pipe, job: FillingJob) -> None:
    recipe = job.recipe
    async with connected(job.database_url) as reader, connected(job.database_url) as writer:
        if not await writer.fetchval(_SQL.try_lock_shared.on(recipe.ledger), recipe.ledger):
            raise RebuildRefused(_GONE)  # and another one has begun
        pipe.send(_Ready())
        target, may_skip = pipe.recv()  # asked by one that is there, while the lock is shared

        async def binding() -> Binding:
            return job.binding

        maker = RowMaker(recipe, reader, writer, binding, _no_keys)
        await maker.take_turns(_TurnsToldBy(pipe), target, may_skip=may_skip)


async def _no_keys(_asked: set[UUID]) -> dict[UUID, DataKey]:
    """Return none: parts are of read models that need no encrypted field."""
    return {}
