"""Checking a part of a log in a separate process, on a snapshot that another process exported."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final, NamedTuple

from service.core.forked_processes import Spare, SpareGone
from service.evidence.rolled_back import rolled_back
from service.evidence.verify.part import PartCheck, PartOutcome, Passed, Task
from service.evidence.verify.segments import Segments
from service.ledger.database import Connection, Database, LedgerError, LedgerUnavailable
from service.ledger.limits import DEADLINE_SECONDS
from service.ledger.sql import queries

START_SECONDS_MAX: Final = 30.0
"""Until the process sees the snapshot: a pooler may have no place for another session."""
_SQL = queries("service.evidence.verify")


class PartPlace(NamedTuple):
    """Where a part is read: a database and a snapshot of it, with time limits in seconds.

    `server` identifies the server that has the snapshot, because a pooler may connect to another
    one.
    """

    url: str
    is_pooled: bool
    server: str
    snapshot: str
    deadline: float
    statement_seconds_max: float


class PartFailed(Exception):
    """A process could not read its part: it was refused a connection, or has gone."""


async def check_in(
    spare: Spare, place: PartPlace, task: Task, send: Callable[[Passed | Segments], object]
) -> PartOutcome | None:
    """Make a spare process check a part; `send` takes what it passes on. Raises PartFailed."""
    try:
        spare.ask(_work, (place, task))
        while isinstance(found := await spare.receive(), (Passed, Segments)):
            send(found)
    except SpareGone as error:
        raise PartFailed("its process has gone") from error
    spare.is_idle = True
    if isinstance(found, PartFailed):
        raise found
    return found


def _work(pipe: Pipe, asked: tuple[PartPlace, Task]) -> None:
    """Check the part that the process at the other end of a pipe asks for."""
    with suppress(LedgerError):  # it was told
        asyncio.run(_check(*asked, pipe.send))


async def server_of(connection: Connection, schema: str) -> str:
    """Return an identifier of this run of the server."""
    return str(await connection.fetchval(_SQL.server.on(schema)))


async def _check(place: PartPlace, task: Task, send: Callable[[Any], object]) -> None:
    database = Database(
        place.url, task.schema, pool_size=1, deadline=DEADLINE_SECONDS, pooled=place.is_pooled
    )
    await database.open()
    try:
        async with AsyncExitStack() as opened:
            connection = await _begun(opened, database, place)
            await connection.fetchrow(_SQL.plan.on(task.schema), "off")
            send(await PartCheck(task, send).check(connection))
    except LedgerError as error:  # raised again: told first, since closing may take its time
        send(PartFailed(type(error).__name__))
        raise
    finally:
        await database.close()


async def _begun(opened: AsyncExitStack, database: Database, place: PartPlace) -> Connection:
    """Return a connection that sees the snapshot; raises LedgerUnavailable."""
    try:
        async with asyncio.timeout(START_SECONDS_MAX):
            connection = await opened.enter_async_context(
                database.background.connection(place.deadline)
            )
            transaction = rolled_back(
                connection,
                seconds_max=place.statement_seconds_max,
                isolation="repeatable_read",
                readonly=True,
                snapshot=place.snapshot,
            )
            await opened.enter_async_context(transaction)
            server = await server_of(connection, database.schema)
    except TimeoutError as error:
        raise LedgerUnavailable("no place for another session") from error
    if server != place.server:
        raise LedgerUnavailable("another server")
    return connection
