"""Replacing a read model's live tables while the service runs.

Why nothing is missed and nothing is applied twice, for inline rows: every transaction that appends
an event of the read model also writes to its tables, in the same transaction, and so needs a lock
that our exclusive one keeps out.

- One that has written before we got the lock has ended. If it committed, its events are in the log
  or in `pending`; all of `pending` is numbered under the lock and applied to the new tables.
- One that has not written yet waits for us, or comes later. Its events have not committed: they
  have no position and are not in the new tables. When it goes on, PostgreSQL looks the table's
  name up again, and it writes to the new one.

For catch-up rows the checkpoint's row lock keeps projecting workers out; its row is the position.

Others queue behind a lock that we wait for. So we wait for a moment only, let them pass, and try
again later.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import asyncpg

from service.ledger.limits import IDLE_SECONDS
from service.ledger.rebuild.build import Builder
from service.ledger.rebuild.parked import ParkedSets
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.shadow import drop, move
from service.ledger.rebuild.shape import refuse_changed
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries

LOCK_MILLISECONDS: Final = 200
"""How long writers may be held up by a try that fails. Under PostgreSQL's deadlock_timeout."""
WAITS_SECONDS: Final = (*(0.05, 0.1, 0.2, 0.5, 1.0, 2.0), *[5.0] * 30)
"""Between the tries: two and a half minutes in all."""
VACUUM_MILLISECONDS: Final = 5_000
"""How long to wait for a vacuum, which blocks nobody. PostgreSQL ends an autovacuum after
deadlock_timeout, a second, if somebody waits for it."""
NUMBERING_SECONDS: Final = 1.0
"""How long another process may hold the head while we hold the tables."""
STATEMENT_SECONDS: Final = 10.0
"""For one statement while others wait: no longer than that for a disk that hangs."""

_LIMITS: Final = (
    "set local synchronous_commit = on;"
    f" set local statement_timeout = '{STATEMENT_SECONDS}s';"
    f" set local idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'"
)

_SQL = queries("service.ledger.rebuild")
_MOVE = queries("service.ledger.following").subscription_move


class _NotNow(Exception):
    """This attempt has to end; a later one may succeed."""


class MadeBy(NamedTuple):
    """Which version of the code made rows, and when; None: they were never rebuilt."""

    version: int
    at: datetime | None


class Swapped(NamedTuple):
    """The result of a swap: the position of both copies, which is live now, which is kept."""

    position: int
    live: MadeBy
    kept: MadeBy


async def swap(
    builder: Builder,
    progress: BuildProgress,
    made: MadeBy,
    waits_seconds: Sequence[float] = WAITS_SECONDS,
) -> tuple[Swapped, BuildProgress]:
    """Put the builder's tables in place and keep the live ones; return the last progress, too.

    `made` is how the builder's rows came to be. All or nothing, however it ends.

    Raises RebuildRefused if the tables were in use at every try, or a migration has changed them.
    """
    for wait in waits_seconds:
        await _wait_for_replica(builder)
        try:
            return await _try(builder, progress, made)
        except (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError, _NotNow):
            await asyncio.sleep(wait)
            progress = await builder.catch_up(progress)
    raise RebuildRefused(
        f"the tables of {builder.model.name} were in use at each of {len(waits_seconds)} tries; "
        "is a long transaction open? Nothing was swapped."
    )


async def _wait_for_replica(builder: Builder) -> None:
    """Wait for the synchronous replica, if there is one, while nothing is locked.

    A transaction that waits for it while it commits still holds its locks, so nobody could even
    read.
    """
    async with builder.writer.transaction():
        await builder.writer.execute("set local synchronous_commit = on")
        await builder.writer.fetchval(_SQL.replica_message.on(builder.model.ledger.name))


async def _try(
    builder: Builder, progress: BuildProgress, made: MadeBy
) -> tuple[Swapped, BuildProgress]:
    async with builder.writer.transaction():
        await builder.writer.execute(_LIMITS)
        inline = builder.model.kind == "inline"
        target = await (_lock_inline(builder) if inline else _lock_catch_up(builder))
        # A migration needs the same lock: the tables stay as they are found now.
        await refuse_changed(builder.writer, builder.model, builder.schema)
        if not await builder.is_close(progress, target, times=2):
            raise _NotNow  # too much to apply while others wait
        progress = await builder.apply_up_to(progress, target)
        await _exchange(builder)
        # The progress of kept rows may be ahead of the log, where that was cut.
        progress = progress._replace(position=target)
        return await _note(builder, made, progress), progress


async def _lock_inline(builder: Builder) -> int:
    """Keep writers out, number what has committed, and return the head."""
    await _lock_tables(builder)
    last = await builder.number(_SQL.newest_unnumbered)
    sequencer, clock = Sequencer(builder.model.ledger), asyncio.get_running_loop().time
    ends_at = clock() + NUMBERING_SECONDS
    while last is not None and not await builder.number(_SQL.is_numbered, last):
        if clock() > ends_at:
            raise _NotNow
        if not await sequencer.number(builder.writer):  # another process holds the head
            await asyncio.sleep(0.002)
    return await builder.number(_SQL.head) or 0


async def _lock_catch_up(builder: Builder) -> int:
    """Keep workers and readers out, and return the checkpoint."""
    await builder.writer.execute(f"set local lock_timeout = {VACUUM_MILLISECONDS}")
    await builder.number(_SQL.checkpoint_hold, builder.model.name)
    await _lock_tables(builder)
    return await builder.target()


async def _lock_tables(builder: Builder) -> None:
    """Lock out vacuums first, which no reader or writer notices, and then everybody."""
    model = builder.model
    tables = ", ".join(f"{model.ledger.name}.{name}" for name in model.tables)
    for mode, milliseconds in (
        ("share update exclusive", VACUUM_MILLISECONDS),
        ("access exclusive", LOCK_MILLISECONDS),
    ):
        await builder.writer.execute(f"set local lock_timeout = {milliseconds}")
        await builder.writer.execute(f"lock table {tables} in {mode} mode")


async def _exchange(builder: Builder) -> None:
    """Keep the live tables as the previous ones; the builder's become the live ones."""
    connection, model = builder.writer, builder.model
    live, kept = model.ledger.name, model.previous_schema
    await drop(connection, model, model.next_schema if builder.schema == kept else kept)
    if builder.schema != kept:
        await move(connection, model, live, kept)
        await move(connection, model, builder.schema, live)
        return
    await move(connection, model, live, model.next_schema)
    await move(connection, model, kept, live)
    await move(connection, model, model.next_schema, kept)


async def _note(builder: Builder, made: MadeBy, progress: BuildProgress) -> Swapped:
    """Record which rows are live and which are kept now; move what follows from that along."""
    model, ledger, position = builder.model, builder.model.ledger.name, progress.position
    row = await builder.writer.fetchrow(_SQL.kept.on(ledger), model.name)
    if model.kind == "catch-up":
        is_back = builder.schema == model.previous_schema
        back_from = row["previous_position"] if row and is_back else None
        # The follower continues from the rows' position, with what they lack parked. The checkpoint
        # moves only where it was ahead of a log that was cut.
        await builder.writer.execute(_MOVE.on(ledger), model.name, position)
        await builder.writer.execute(_SQL.parked_beyond.on(ledger), model.name, position)
        await ParkedSets(model, builder.writer).exchange(progress, back_from)
    # Rows that nothing rebuilt yet are of the first version.
    was = MadeBy(row["version"], row["rebuilt_at"]) if row else MadeBy(1, None)
    await builder.writer.execute(_SQL.note.on(ledger), model.name, *made, *was, position)
    return Swapped(position, made, was)
