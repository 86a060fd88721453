"""The state of a ledger as of any position, from its numbered events alone.

The projectors of the read models write into temporary tables of the same shape, in a transaction
that is rolled back: no row of a read model is read, and none is written. Positions decide what had
happened; a time only chooses the position, which is that of the last event that says it happened at
that time or before.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec

from service.core.errors import invalid
from service.evidence.replay.erased import ErasedProjector
from service.evidence.replay.log_fault import LogFault, check_place
from service.ledger.codec import happened_at
from service.ledger.database import Connection
from service.ledger.events import Recorded
from service.ledger.ledger import Ledger, Transaction
from service.ledger.projector import Projector
from service.ledger.rebuild.apply import apply
from service.ledger.sql import queries

BATCH: Final = 5000
"""Positions that are replayed, and rows that are read, at once."""
REPLAY_SECONDS_MAX: Final = 6 * 3600.0

_SCRATCH: Final = "pg_temp"
_SQL = queries("service.evidence.replay")

SHOWN: Final = {
    table: _SQL[f"replay_{name}"]
    for table, name in {
        "claim_list": "claims",
        "entities": "entities",
        "connections": "connections",
        "onboardings": "onboardings",
        "connect_links": "connect_links",
        "erasures": "erasures",
        "claim_documents": "documents",
        "partners": "partners",
        "api_keys": "api_keys",
    }.items()
}
"""What is shown of a table: nothing secret, nothing that only machines need."""


class Moment(NamedTuple):
    """Where a replay ends: a position, when that event happened (0 and None: before the first).

    `at` is None, too, where that event is damaged: if the replay needs it, it says so.
    `size` is how many numbered events there are.
    """

    position: int
    at: datetime | None
    size: int


class Wanted(NamedTuple):
    """What to show: everything, or what concerns one of these."""

    claim_id: str | None = None
    entity_id: str | None = None
    partner_id: str | None = None


async def moment_of(
    ledger: Ledger, *, at: datetime | None = None, position: int | None = None
) -> Moment:
    """Return the moment of a time or a position; without either, that of the whole log.

    Refuses with `validation_failed` a position that the log has not reached.
    """
    async with ledger.database.connection(REPLAY_SECONDS_MAX) as connection:
        size: int = await connection.fetchval(_SQL.replay_size.on(ledger.name)) or 0
        last: int = size if position is None else position
        if last > size:
            raise invalid("position", f"the log has {size} numbered events")
        if at is not None:
            last = await _last_by(connection, ledger.name, at, size)
        state = await connection.fetchval(_SQL.replay_event.on(ledger.name), last)
    return Moment(last, happened_at(state), size)


async def _last_by(connection: Connection, schema: str, at: datetime, size: int) -> int:
    """Return the last position that says it happened by then; 0 where none does.

    PostgreSQL reads the states, and gives up at one that is damaged: then they are read here.
    """
    try:
        return await connection.fetchval(_SQL.replay_position.on(schema), at, size) or 0
    except asyncpg.DataError:
        for end in range(size, 0, -BATCH):
            rows = await connection.fetch(
                _SQL.replay_events.on(schema), max(0, end - BATCH), end, None
            )
            for row in reversed(rows):
                happened = happened_at(row["state"])
                if happened is not None and happened <= at:
                    return row["position"]
        return 0


class ReplayedState:
    """What a replay arrived at; as long as its transaction is open."""

    def __init__(self, connection: Connection) -> None:
        """Made by `replayed`."""
        self._connection = connection

    async def rows(self, table: str, wanted: Wanted) -> AsyncIterator[dict[str, Any]]:
        """Return what is shown of a read model's table."""
        statement = SHOWN[table].on(_SCRATCH)
        async for row in self._connection.cursor(statement, *wanted, prefetch=BATCH):
            shown = dict(row)
            if "partner_invoice_ids" in shown:
                shown["partner_invoice_ids"] = msgspec.json.decode(shown["partner_invoice_ids"])
            yield shown


@asynccontextmanager
async def replayed(
    ledger: Ledger, position: int, advance: Callable[[int], object]
) -> AsyncGenerator[ReplayedState, None]:
    """Replay the events up to a position; `advance` is told how many positions were passed.

    Raises LogFault where a position is missing, repeated or without its event, and where an event
    is none of the ledger's catalogue: a state that leaves it out would be another one.
    """
    async with _scratch(ledger) as transaction:
        for projector in ledger.projectors:
            for table in projector.tables:
                statement = _SQL.replay_table.on(ledger.name).replace("the_table", table.name)
                await transaction.connection.execute(statement)
        await transaction.connection.execute(_SQL.replay_erasures_table.on(_SCRATCH))
        projectors = (*ledger.projectors, ErasedProjector())
        reading = _Reading(ledger, projectors, transaction)
        for start in range(0, position, BATCH):
            end = min(start + BATCH, position)
            events = await reading.events(start, end)
            for projector in projectors:
                writes = (write for event in events for write in projector.project(event))
                await apply(transaction.connection, _SCRATCH, writes)
            advance(end - start)
        yield ReplayedState(transaction.connection)


@asynccontextmanager
async def _scratch(ledger: Ledger) -> AsyncGenerator[Transaction, None]:
    """Lend a transaction of which nothing stays."""
    async with ledger.database.connection(REPLAY_SECONDS_MAX) as connection:
        scratch = connection.transaction()
        await scratch.start()
        limit = f"set local idle_in_transaction_session_timeout = '{REPLAY_SECONDS_MAX:.0f}s'"
        await connection.execute(limit)
        try:
            yield Transaction(ledger, connection)
        except Exception:
            await scratch.rollback()
            raise
        await scratch.rollback()


class _Reading:
    """Reads the events that projectors want, and opens only the boxes that they need."""

    def __init__(
        self, ledger: Ledger, projectors: Sequence[Projector], transaction: Transaction
    ) -> None:
        self._transaction = transaction
        self._known = frozenset(ledger.codec.topics)
        self._topics = sorted(_topics(projectors))
        self._opened = _topics(one for one in projectors if one.reads_personal)

    async def events(self, start: int, end: int) -> list[Recorded]:
        """Return the events after `start`, up to `end`; raises LogFault."""
        places = await self._transaction.fetch(_SQL.replay_order, start, end)
        for due, place in zip_longest(range(start + 1, end + 1), places):
            position, topic = (None, None) if place is None else place
            check_place(position, end + 1 if due is None else due)
            if topic not in self._known:
                what = (
                    "its event is gone"
                    if topic is None
                    else f"{topic!r} is no event of this ledger"
                )
                raise LogFault(position or 0, what)
        rows = await self._transaction.fetch(_SQL.replay_events, start, end, self._topics)
        return await self._transaction.decode(rows, personal=self._opened)


def _topics(projectors: Iterable[Projector]) -> set[str]:
    return {topic.__name__ for projector in projectors for topic in projector.topics}
