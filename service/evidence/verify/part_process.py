"""Checking a part of a log in a process of its own, on the snapshot that another one exported."""

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final, NamedTuple

from service.evidence.rolled_back import rolled_back
from service.evidence.verify.part import PartCheck, PartOutcome, Passed, Task
from service.ledger.database import Database, LedgerError
from service.ledger.limits import DEADLINE_SECONDS
from service.ledger.sql import queries

_SQL = queries("service.evidence.verify")
_JOIN_SECONDS: Final = 10.0


class PartPlace(NamedTuple):
    """Where a part is read: a database, and the snapshot of it; what it may take, in seconds."""

    url: str
    snapshot: str
    deadline: float
    statement_seconds_max: float


class PartFailed(Exception):
    """A process could not read its part: it was refused a connection, or has gone."""


class PartProcess:
    """A part that another process checks, and answers for afterwards."""

    def __init__(self, place: PartPlace, task: Task, send: Callable[[Passed], object]) -> None:
        """Start the process."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._send = send
        self._process = context.Process(target=_main, args=(theirs, place, task), daemon=True)
        self._process.start()
        theirs.close()

    async def check(self) -> PartOutcome | None:
        """Wait for the outcome; raises PartFailed."""
        while isinstance(found := await self._receive(), Passed):
            self._send(found)
        return found

    async def begun(self) -> AsyncIterator[bytes]:
        """Yield the ids of the streams that begin in this part, joined."""
        await self._ask("begun")
        while (ids := await self._receive()) is not None:
            yield ids

    async def lacks(self, joined: bytes) -> bool:
        """Return whether none of these streams has an event in this part."""
        await self._ask("lacks", joined)
        return await self._receive()

    async def last(self, streams: list[bytes]) -> list[tuple[int, int] | None]:
        """Return the last version and append_id of each stream; None: it has none here."""
        await self._ask("last", streams)
        return await self._receive()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join(_JOIN_SECONDS)
        self._pipe.close()

    async def _ask(self, name: str, *arguments: object) -> None:
        await asyncio.to_thread(self._pipe.send, (name, *arguments))

    async def _receive(self) -> Any:  # noqa: ANN401 - what was asked for
        try:
            found = await asyncio.to_thread(self._pipe.recv)
        except (EOFError, OSError) as error:
            raise PartFailed("its process has gone") from error
        if isinstance(found, PartFailed):
            raise found
        return found


class LocalPart:
    """The same in this process, on a connection of the caller's."""

    def __init__(self, part: PartCheck) -> None:
        """`part` was checked."""
        self._part = part

    async def begun(self) -> AsyncIterator[bytes]:
        """Yield the ids of the streams that begin in this part, joined."""
        for ids in self._part.begun():
            yield ids

    async def lacks(self, joined: bytes) -> bool:
        """Return whether none of these streams has an event in this part."""
        return self._part.lacks(joined)

    async def last(self, streams: list[bytes]) -> list[tuple[int, int] | None]:
        """Return the last version and append_id of each stream; None: it has none here."""
        return self._part.last(streams)


CheckedPart = PartProcess | LocalPart


def _main(pipe: Pipe, place: PartPlace, task: Task) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    try:
        part = PartCheck(task, pipe.send)
        try:
            pipe.send(asyncio.run(_checked(part, place, task.schema)))
        except LedgerError as error:
            pipe.send(PartFailed(type(error).__name__))
            return
        _answer(pipe, part)
    except (EOFError, OSError):  # nobody asks any more
        return


def _answer(pipe: Pipe, part: PartCheck) -> None:
    while True:
        name, *arguments = pipe.recv()
        if name == "begun":
            for ids in part.begun():
                pipe.send(ids)
            pipe.send(None)
        elif name == "lacks":
            pipe.send(part.lacks(*arguments))
        else:
            pipe.send(part.last(*arguments))


async def _checked(part: PartCheck, place: PartPlace, schema: str) -> PartOutcome | None:
    database = Database(place.url, schema, pool_size=1, deadline=DEADLINE_SECONDS)
    await database.open()
    try:
        async with (
            database.background.connection(place.deadline) as connection,
            rolled_back(
                connection,
                seconds_max=place.statement_seconds_max,
                isolation="repeatable_read",
                readonly=True,
                snapshot=place.snapshot,
            ),
        ):
            await connection.fetchrow(_SQL.plan.on(schema), "off")
            return await part.check(connection)
    finally:
        await database.close()
