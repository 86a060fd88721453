"""A part of a read model's rows, made in a process of its own."""

import asyncio
from multiprocessing.connection import Connection as Pipe
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from service.core.spares import Spare, SpareGone
from service.ledger.binding import Binding
from service.ledger.database import LedgerError
from service.ledger.encryption import DataKey
from service.ledger.events import Unreadable
from service.ledger.rebuild.connecting import connected
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.row_maker import Advance, Recipe, RowMaker
from service.ledger.sql import queries

_GONE: Final = "a process of it has ended. Nothing was swapped; begin again"
_SQL = queries("service.ledger.rebuild")


class FillingJob(NamedTuple):
    """What a process is given: the database, a recipe, and what events are told by."""

    database_url: str
    recipe: Recipe
    binding: Binding


class _Ready(NamedTuple):
    """The process holds its share of the lock, and waits to be told to begin."""


async def fill_in(
    spare: Spare, job: FillingJob, progress: BuildProgress, target: int, advance: Advance
) -> BuildProgress:
    """Have a spare process apply the log up to a position, as `RowMaker.load` does.

    `advance` gets the position after each page. Raises RebuildRefused or Unreadable.
    """
    try:
        spare.ask(work, job)
        ready = await spare.receive()
        if isinstance(ready, Exception):
            raise ready
        spare.send((progress, target))
        while isinstance(found := await spare.receive(), int):
            advance(found)
    except SpareGone as error:
        raise RebuildRefused(_GONE) from error
    spare.is_idle = True
    if isinstance(found, Exception):
        raise found
    return found


def work(pipe: Pipe, job: FillingJob) -> None:
    """Do a job that the process at the other end of a pipe asks for."""
    pipe.send(asyncio.run(_outcome(pipe, job)))


async def _outcome(pipe: Pipe, job: FillingJob) -> BuildProgress | Exception:
    try:
        return await _loaded(pipe, job)
    except (RebuildRefused, Unreadable) as error:
        return error
    except (LedgerError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        fault = f"a process of it could not read or write its part: {type(error).__name__}"
        return RebuildRefused(f"{fault}. Nothing was swapped; begin again")


async def _loaded(pipe: Pipe, job: FillingJob) -> BuildProgress:
    recipe = job.recipe
    async with connected(job.database_url) as reader, connected(job.database_url) as writer:
        if not await writer.fetchval(_SQL.try_lock_shared.on(recipe.ledger), recipe.ledger):
            raise RebuildRefused(_GONE)  # and another one has begun
        pipe.send(_Ready())
        progress, target = pipe.recv()  # asked by one that is there, while the lock is shared

        async def binding() -> Binding:
            return job.binding

        maker = RowMaker(recipe, reader, writer, binding, _no_keys)
        return await maker.load(progress, target, pipe.send)


async def _no_keys(_asked: set[UUID]) -> dict[UUID, DataKey]:
    """Return none: parts are of read models that need no encrypted field."""
    return {}
