"""Rebuilding a read model from the log under traffic, going back, and verifying (decision 3).

An operator's action, as the owner of the tables. It needs a direct connection: a session's advisory
lock keeps two rebuilds apart, which a transaction pooler would lend to others.
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import asyncpg

from projections.compare import Compared
from projections.read_model import ReadModel, RebuildRefused
from projections.rebuild_aside import Aside
from projections.rebuild_build import Builder, Verified
from projections.rebuild_shadow import drop, has_all
from projections.rebuild_swap import Made, Swapped, swap
from service.ledger.database import Connection, LedgerUnavailable
from service.ledger.sql import Sql

CONNECT_SECONDS_MAX = 10

# Pages of the log are joined by index however large the planner believes them to be: its guess for
# a range of parameters is a fixed share of the table. No parallel workers: the service needs the
# other cores. Commits are not waited for, but for the swap's: a rebuild that is lost is made again.
_SESSION = {
    "application_name": "claim-ledger rebuild",
    "client_connection_check_interval": "1s",  # a rebuild that was killed lets go of its lock
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "max_parallel_maintenance_workers": "0",
    "max_parallel_workers_per_gather": "0",
    "synchronous_commit": "off",
    "timezone": "UTC",
}
_TRY_LOCK = Sql("projections.rebuilding", "try_lock")
_UNLOCK = Sql("projections.rebuilding", "unlock")
_NOW = Sql("service.ledger", "now")
_KEPT = Sql("projections.rebuilding", "kept")

Advance = Callable[[int], object]


class Rebuilt(NamedTuple):
    """What a rebuild came to. `swapped` None: nothing was.

    `put_aside` are events that could not be read or applied, and what follows them in their
    streams; they are parked now.
    """

    seconds: float
    events: int
    compared: Compared
    swapped: Swapped | None
    put_aside: Sequence[Aside]


class Workshop:
    """The owner's two connections to one ledger, and the lock against a second rebuild."""

    def __init__(self, connections: tuple[Connection, Connection]) -> None:
        """Made by `workshop`."""
        self._connections = connections

    def builder(self, model: ReadModel, schema: str, position: int, advance: Advance) -> Builder:
        """Answer a builder on these connections."""
        return Builder(model, schema, position, self._connections, advance)

    async def rebuild(self, model: ReadModel, advance: Advance, *, if_equal: bool) -> Rebuilt:
        """Build anew beside the live tables, compare, swap, keep the old ones.

        `if_equal`: swap only where no row differs. Raises RebuildRefused; nothing has changed then.
        """
        started = time.monotonic()
        builder = self.builder(model, model.next_schema, 0, advance)
        await builder.build()
        compared, aside = await builder.compare()
        swapped = None
        if (compared.total or aside) and if_equal:
            await drop(builder.writer, model, model.next_schema)
        else:
            await builder.catch_up()
            made_at = await builder.writer.fetchval(_NOW.on(model.ledger.name))
            swapped = await swap(builder, Made(model.projector.version, made_at))
            aside = builder.put_aside.events
        return Rebuilt(time.monotonic() - started, builder.events, compared, swapped, aside)

    async def verify(self, model: ReadModel, advance: Advance) -> Verified:
        """Replay beside the live tables and compare; nothing is changed."""
        builder = self.builder(model, model.next_schema, 0, advance)
        builder.put_aside.is_allowed = True
        await builder.build()
        verified = await builder.compare()
        await drop(builder.writer, model, model.next_schema)
        return verified

    async def rollback(self, model: ReadModel, advance: Advance) -> Swapped:
        """Put the kept tables back, brought up to date.

        Raises RebuildRefused where none are kept, or what is kept cannot be brought up to date.
        """
        writer, where = self._connections[1], model.ledger.name
        kept = await writer.fetchrow(_KEPT.on(where), model.name)
        if kept is None or not await has_all(writer, model, model.previous_schema):
            raise RebuildRefused(f"no previous {model.name} is kept in {where}")
        if kept["previous_position"] is None:
            raise RebuildRefused(
                f"the previous {model.name} of {where} has not the same parked events as the live "
                "one: there is no way back to it, and `projections rebuild` makes another"
            )
        schema, position = model.previous_schema, kept["previous_position"]
        builder = self.builder(model, schema, position, advance)
        builder.put_aside.is_allowed = False
        await builder.catch_up()
        return await swap(builder, Made(kept["previous_version"], kept["previous_rebuilt_at"]))


@asynccontextmanager
async def workshop(database_url: str, ledger: str) -> AsyncGenerator[Workshop, None]:
    """Connect to a ledger as the owner of its tables.

    Raises:
        RebuildRefused: another rebuild works on this ledger, or the login lacks a right.
        LedgerUnavailable: PostgreSQL does not answer.

    """
    reader = await _connect(database_url)
    try:
        writer = await _connect(database_url)
        try:
            if not await writer.fetchval(_TRY_LOCK.on(ledger), ledger):
                raise RebuildRefused(f"another rebuild or verification of {ledger} is running")
            yield Workshop((reader, writer))
            await writer.execute(_UNLOCK.on(ledger), ledger)
        except asyncpg.InsufficientPrivilegeError as error:
            raise RebuildRefused(
                f"{error}: rebuilding needs the login that owns the tables, as `migrate` does, "
                "with the right to create schemas in the database"
            ) from error
        finally:
            writer.terminate()
    finally:
        reader.terminate()


async def _connect(database_url: str) -> asyncpg.Connection:
    try:
        return await asyncpg.connect(
            database_url, timeout=CONNECT_SECONDS_MAX, server_settings=_SESSION
        )
    except OSError as error:
        raise LedgerUnavailable(type(error).__name__) from error
