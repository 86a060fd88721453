"""A part of a read model's rows, made in a process of its own."""

import asyncio
import multiprocessing
import signal
import sys
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg

from service.ledger.binding import Binding
from service.ledger.database import LedgerError
from service.ledger.encryption import DataKey
from service.ledger.events import Unreadable
from service.ledger.rebuild.connecting import connected
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.row_maker import Advance, Recipe, RowMaker
from service.ledger.sql import queries

_JOIN_SECONDS: Final = 10.0
_GONE: Final = "a process of it has ended. Nothing was swapped; begin again"
_SQL = queries("service.ledger.rebuild")


class FillingJob(NamedTuple):
    """What a process is given: the database, a recipe, and what events are told by."""

    database_url: str
    recipe: Recipe
    binding: Binding


class _Ready(NamedTuple):
    """The process holds its share of the lock, and waits to be told to begin."""


class FillingProcess:
    """A process that makes a part of the rows. It ends where the one that started it has gone."""

    def __init__(self, job: FillingJob) -> None:
        """Start it."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, job), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return self._process.pid

    async def load(self, progress: BuildProgress, target: int, advance: Advance) -> BuildProgress:
        """Have it apply the log up to a position, as `RowMaker.load` does.

        `advance` gets the position after each page. Raises RebuildRefused or Unreadable.
        """
        await self._receive()
        try:
            self._pipe.send((progress, target))
        except OSError as error:
            raise RebuildRefused(_GONE) from error
        while isinstance(found := await self._receive(), int):
            advance(found)
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join(_JOIN_SECONDS)
        self._pipe.close()

    async def _receive(self) -> Any:  # noqa: ANN401 - what is next
        """Return what the process sends next; raise what went wrong there."""
        await _until_readable(self._pipe.fileno())
        try:
            found = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise RebuildRefused(_GONE) from error
        if isinstance(found, Exception):
            raise found
        return found


async def _until_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(descriptor, lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)


def _main(pipe: Pipe, job: FillingJob) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    _send(pipe, asyncio.run(_outcome(pipe, job)))


def _send(pipe: Pipe, message: object) -> None:
    try:
        pipe.send(message)
    except OSError:  # nobody asks any more
        sys.exit(1)


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
        _send(pipe, _Ready())
        try:
            progress, target = pipe.recv()  # asked by one that is there, while the lock is shared
        except (EOFError, OSError):
            sys.exit(1)

        async def binding() -> Binding:
            return job.binding

        maker = RowMaker(recipe, reader, writer, binding, _no_keys)
        return await maker.load(progress, target, partial(_send, pipe))


async def _no_keys(_asked: set[UUID]) -> dict[UUID, DataKey]:
    """Return none: parts are of read models that need no encrypted field."""
    return {}
