"""Rebuilding a read model from the log under traffic, rolling back, and verifying (decision 25).

An operator does this, as the owner of the tables. It needs a direct connection: a session's
advisory lock prevents two rebuilds at once, and a transaction pooler would lend that session to
others.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import NamedTuple

import asyncpg

from service.core.clock import timestamp
from service.core.forked_processes import NO_SPARES, Spares
from service.core.progress import Advance
from service.ledger.database import Connection, LedgerUnavailable
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_SECONDS, local_limits
from service.ledger.read_model import ReadModel
from service.ledger.rebuild.build import Builder, VerifiedModel
from service.ledger.rebuild.compare import Compared
from service.ledger.rebuild.connecting import CLOSED, connected
from service.ledger.rebuild.parked import ParkedSets
from service.ledger.rebuild.progress import BuildProgress, SkippedEvent
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.shadow import analyze, clear, has_all
from service.ledger.rebuild.shape import refuse_changed
from service.ledger.rebuild.swap import MadeBy, Swapped, swap
from service.ledger.sql import queries

_SQL = queries("service.ledger.rebuild")
_NOW = queries("service.ledger").now


class Rebuilt(NamedTuple):
    """The result of a rebuild. `swapped` is None if nothing was swapped.

    `put_aside` are events that could not be read or applied, and the later events of their streams.
    If rows were swapped, these are parked now, and the live rows had them before.
    """

    seconds: float
    events: int
    compared: Compared
    swapped: Swapped | None
    put_aside: Sequence[SkippedEvent]


class RebuildSession:
    """The owner's two connections to one ledger, under the lock against a second rebuild."""

    def __init__(
        self, connections: tuple[Connection, Connection], database_url: str, spares: Spares
    ) -> None:
        """Only `rebuild_session` makes one."""
        self._connections = connections
        self._database_url = database_url
        self._spares = spares

    def builder(self, model: ReadModel, schema: str, advance: Advance) -> Builder:
        """Return a builder on these connections."""
        where = (self._database_url, self._spares)
        return Builder(model, schema, *self._connections, advance, *where)

    async def rebuild(
        self, model: ReadModel, advance: Advance, *, if_equal: bool, park: bool = False
    ) -> Rebuilt:
        """Rebuild beside the live tables, compare, swap, and keep the old ones.

        `if_equal`: swap only if no row differs. `park`: swap even if events of a catch-up read
        model cannot be applied that the live rows have, and park them. Events that are parked
        already stay parked, and do not prevent a swap. Raises RebuildRefused; nothing has changed
        then.
        """
        started = time.monotonic()
        builder = self.builder(model, model.next_schema, advance)
        progress = await builder.build(may_skip=model.kind == "catch-up")
        compared, skipped, _ = await builder.compare_and_analyze(progress)
        swapped = None
        if not (if_equal and compared.total) and (not skipped or (park and not if_equal)):
            # Without `park`, an event that comes in from now on may not be skipped either.
            progress = progress._replace(may_skip=progress.may_skip and park)
            progress = await builder.catch_up(progress)
            made_at = await builder.writer.fetchval(_NOW.on(model.ledger.name))
            made = MadeBy(model.projector.version, made_at)
            swapped, progress = await swap(builder, progress, made)
            skipped = progress.skipped
        return Rebuilt(time.monotonic() - started, progress.events, compared, swapped, skipped)

    async def verify(self, model: ReadModel, advance: Advance) -> VerifiedModel:
        """Replay beside the live tables and compare; nothing is changed."""
        builder = self.builder(model, model.next_schema, advance)
        return await builder.compare(await builder.build(may_skip=True))

    async def rollback(
        self, model: ReadModel, advance: Advance, live_made_at: datetime | None = None
    ) -> Swapped:
        """Put the kept tables back, brought up to date.

        Raises RebuildRefused where none are kept, a migration has changed the live ones since,
        these were not made at `live_made_at`, if that is given, or what is kept cannot be brought
        up to date.
        """
        writer, where = self._connections[1], model.ledger.name
        kept = await writer.fetchrow(_SQL.kept.on(where), model.name)
        if kept is None or not await has_all(writer, model, model.previous_schema):
            raise RebuildRefused(f"no previous {model.name} is kept in {where}")
        if live_made_at is not None:  # nobody else swaps under this lock
            _refuse_others(kept["rebuilt_at"], live_made_at)
        await refuse_changed(writer, model, model.previous_schema)
        progress = BuildProgress(kept["previous_position"])
        if model.kind == "catch-up":
            lacking = await ParkedSets(model, writer).streams_kept()
            progress = progress._replace(skipped_streams=lacking)
        builder = self.builder(model, model.previous_schema, advance)
        progress = await builder.catch_up(progress)
        # A migration may have set options of columns since.
        await analyze(writer, model, model.previous_schema)
        made = MadeBy(kept["previous_version"], kept["previous_rebuilt_at"])
        return (await swap(builder, progress, made))[0]


def _refuse_others(made_at: datetime | None, expected: datetime) -> None:
    """Raise RebuildRefused where the live rows are not those that an operator wants replaced."""
    live = f"at {timestamp(made_at)}" if made_at else "before any rebuild"
    asked = f"at {timestamp(expected)}"
    if live != asked:
        raise RebuildRefused(
            f"the live rows were made {live}, not {asked}: somebody else has replaced them. "
            "Nothing was swapped."
        )


@asynccontextmanager
async def rebuild_session(
    database_url: str, ledger: str, spares: Spares = NO_SPARES
) -> AsyncGenerator[RebuildSession, None]:
    """Connect to a ledger as the owner of its tables; drop unfinished tables before and after.

    `spares` make rows beside this process where a read model needs no sealed fields.

    Raises RebuildRefused if another rebuild works on this ledger, or the login lacks a right, and
    LedgerUnavailable if PostgreSQL does not answer, or no longer.
    """
    async with connected(database_url) as reader, connected(database_url) as writer:
        if not await writer.fetchval(_SQL.try_lock.on(ledger), ledger):
            raise RebuildRefused(f"another rebuild or verification of {ledger} is running")
        try:
            await clear(writer, f"{ledger}_next")
            try:
                yield RebuildSession((reader, writer), database_url, spares)
            finally:
                # A connection that was lost, or cut off, leaves this to the next who has the lock.
                with suppress(asyncpg.PostgresError, *CLOSED, OSError):
                    await _leave_transaction(writer)
                    await clear(writer, f"{ledger}_next")
                    await writer.execute(_SQL.unlock.on(ledger), ledger)
        except asyncpg.LockNotAvailableError as error:
            raise RebuildRefused(
                f"{error}: a table or a row was in use for too long. Is a transaction, a dump or a "
                "migration under way? Nothing was swapped."
            ) from error
        except asyncpg.InsufficientPrivilegeError as error:
            raise RebuildRefused(
                f"{error}: rebuilding needs the login that owns the tables, as `migrate` does, "
                "with the right to create schemas in the database"
            ) from error
        except CLOSED as error:
            raise LedgerUnavailable(type(error).__name__) from error


async def _leave_transaction(writer: Connection) -> None:
    """Roll back where the server is still in a transaction, which would take back what is dropped.

    It is where a rebuild was cancelled while it waited to hear that one had begun.
    """
    await writer.execute("select")  # the answer to what was cancelled has come by then
    if writer.is_in_transaction():
        await writer.execute("rollback")


async def has_left_over(ledger: Ledger) -> bool:
    """Return whether there are unfinished tables: a rebuild is running, or was killed."""
    return bool(await ledger.database.reads.fetch(_SQL.schema_tables, f"{ledger.name}_next"))


async def clear_left_over(database_url: str, ledger: str) -> None:
    """Drop unfinished tables of a ledger, unless a rebuild is running.

    One transaction does it, so it works over a transaction pooler, too.

    Raises RebuildRefused if the login does not own them, LedgerUnavailable if PostgreSQL is away.
    """
    async with connected(database_url, pooled=True) as connection:
        try:
            async with connection.transaction():
                await connection.execute(local_limits(BACKGROUND_SECONDS))
                if await connection.fetchval(_SQL.try_lock_briefly.on(ledger), ledger):
                    await clear(connection, f"{ledger}_next")
        except asyncpg.InsufficientPrivilegeError as error:
            raise RebuildRefused(str(error)) from error
