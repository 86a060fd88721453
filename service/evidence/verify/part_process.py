"""Checking a part of a log in a process of its own, on the snapshot that another one exported."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from multiprocessing.connection import Connection as OurEnd
from multiprocessing.connection import Pipe
from typing import Any, Final, NamedTuple

from service.evidence.rolled_back import rolled_back
from service.evidence.verify.part import PartCheck, PartOutcome, Passed, Task
from service.evidence.verify.segments import Segments
from service.ledger.database import Connection, Database, LedgerError, LedgerUnavailable
from service.ledger.limits import DEADLINE_SECONDS
from service.ledger.sql import queries

START_SECONDS_MAX: Final = 30.0
"""Until the process sees the snapshot: a pooler may have no place for another session."""
_COMMAND: Final = (
    "import os, sys; from service.core.parent import die_with; die_with(int(sys.argv[1])); "
    "from service.evidence.verify.part_process import work; work(int(sys.argv[2]))"
)
_JOIN_SECONDS: Final = 10.0
_SQL = queries("service.evidence.verify")


class PartPlace(NamedTuple):
    """Where a part is read: a database, and the snapshot of it; what it may take, in seconds.

    `server` is what tells the server apart that has the snapshot: a pooler may lead to another.
    """

    url: str
    is_pooled: bool
    server: str
    snapshot: str
    deadline: float
    statement_seconds_max: float


class PartFailed(Exception):
    """A process could not read its part: it was refused a connection, or has gone."""


class PartProcess:
    """A part that another process checks."""

    def __init__(
        self, place: PartPlace, task: Task, send: Callable[[Passed | Segments], object]
    ) -> None:
        """Start the process. Ctrl-C is not for it: it ends with this one, however that ends.

        Nor does it take modules from the directory in which somebody runs the command.
        """
        self._pipe, theirs = Pipe()
        self._asked = (place, task)
        self._send = send
        number = theirs.fileno()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-c", _COMMAND, str(os.getpid()), str(number)],
                stdin=subprocess.DEVNULL,
                pass_fds=(number,),
                process_group=0,
            )

    async def check(self) -> PartOutcome | None:
        """Wait for the outcome; raises PartFailed."""
        try:
            await asyncio.to_thread(self._pipe.send, self._asked)
            while isinstance(found := await asyncio.to_thread(self._pipe.recv), (Passed, Segments)):
                self._send(found)
        except (EOFError, OSError) as error:
            raise PartFailed("its process has gone") from error
        if isinstance(found, PartFailed):
            raise found
        return found

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_JOIN_SECONDS)
        self._pipe.close()


def work(number: int) -> None:
    """Check the part that the process at the other end of a pipe asks for."""
    with OurEnd(number) as pipe:
        try:
            place, task = pipe.recv()
            asyncio.run(_check(place, task, pipe.send))
        except (EOFError, OSError, LedgerError):  # nobody asks any more, or was told
            return


async def server_of(connection: Connection, schema: str) -> str:
    """Return what tells this server's run apart from any other's."""
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
