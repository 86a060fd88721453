"""The state of a ledger as of any position, from its numbered events alone.

The projectors of the read models write into temporary tables of the same shape, in a transaction
that is rolled back: no row of a read model is read or written. Positions decide what had happened;
a time only chooses the position, that of the last event that says it happened by then.
"""

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Container,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec

from service.core.errors import invalid
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.evidence.replay.footing import Ascent, BindingCheckpoints, Footing, check_leaf
from service.evidence.replay.log_fault import LogFault, check_place
from service.evidence.rolled_back import rolled_back
from service.facts.privacy import PersonalDataErased
from service.ledger.codec import happened_at
from service.ledger.database import Connection
from service.ledger.decoding import PAGE_BYTES_MAX, is_full
from service.ledger.events import Recorded
from service.ledger.ledger import Ledger, Transaction
from service.ledger.merkle import CompactRange, leaf_of
from service.ledger.projector import Insert, Projector, Table, Write
from service.ledger.rebuild.apply import apply
from service.ledger.sql import queries

BATCH: Final = 5000
"""Positions that are replayed at once; fewer where events are large (PAGE_BYTES_MAX)."""
ROWS_AHEAD: Final = 200
"""Rows of a read model that are read at once."""
REPLAY_SECONDS_MAX: Final = 6 * 3600.0

_SCRATCH: Final = "pg_temp"
_SQL = queries("service.evidence.replay")
_LOG_RANGE = queries("service.ledger").log_range

SHOWN: Final = {
    table: _SQL[table]
    for table in (
        *("claim_list", "entities", "connections", "onboardings", "connect_links", "erasures"),
        *("claim_documents", "partners", "api_keys"),
    )
}
"""What is shown of each table: nothing secret, nothing that only machines need."""


ERASURES = Table("erasures", "subject text, position bigint, at timestamptz, reason text")
"""A table that only a replay has, since no read model keeps erasures."""


class ErasedProjector(Projector):
    """Turns erasures into rows of the scratch table `erasures`."""

    name = "erasures"
    version = 1
    tables = (ERASURES,)
    topics = (PersonalDataErased,)

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return a row for an erasure."""
        event = recorded.event
        if isinstance(event, PersonalDataErased):
            row = (event.subject, recorded.position, recorded.meta.at, event.reason)
            yield Insert(ERASURES, row)


class Moment(NamedTuple):
    """Where a replay ends: a position (0: before the first event) and when its event happened.

    `at` is None at position 0, and where that event is damaged: a replay that needs the event
    raises. `size` counts the numbered events.
    """

    position: int
    at: datetime | None
    size: int


class Wanted(NamedTuple):
    """What to show: everything, or what concerns one of these ids."""

    claim_id: str | None = None
    entity_id: str | None = None
    partner_id: str | None = None


async def moment_of(
    ledger: Ledger, *, at: datetime | None = None, position: int | None = None
) -> Moment:
    """Return the moment of a time or a position; without either, the end of the log.

    Raises Refusal (`validation_failed`) for a position that the log has not reached, and LogFault
    if its event is not the one that was hashed.
    """
    async with ledger.database.background.transaction(REPLAY_SECONDS_MAX) as connection:
        size: int = await connection.fetchval(_SQL.size.on(ledger.name)) or 0
        last: int = size if position is None else position
        if last > size:
            raise invalid("position", f"the log has {size} numbered events")
        if at is not None:
            last = await _last_by(connection, ledger.name, at, size)
        row = await connection.fetchrow(_SQL.event.on(ledger.name), last)
    if row is None:
        return Moment(last, None, size)
    *columns, logged = row
    check_leaf(last, logged, leaf_of(*columns))
    return Moment(last, happened_at(row["state"]), size)


async def _last_by(connection: Connection, schema: str, at: datetime, size: int) -> int:
    """Return the last position whose event says it happened by then; 0 if there is none.

    PostgreSQL reads the states, and fails at a damaged one: then they are decoded here.
    """
    try:
        return await connection.fetchval(_SQL.position.on(schema), at, size) or 0
    except asyncpg.DataError:
        end, query = size, _SQL.happened.on(schema)
        while end > 0:
            start = max(0, end - BATCH)
            rows = await connection.fetch(query, start, end, PAGE_BYTES_MAX)
            for row in rows:
                happened = happened_at(row["state"])
                if happened is not None and happened <= at:
                    return row["position"]
            end = rows[-1]["position"] - 1 if is_full(rows) else start
        return 0


class ReplayedState:
    """The outcome of a replay, readable while its transaction is open, and what it rests on."""

    def __init__(self, connection: Connection, footing: Footing) -> None:
        """Made by `replayed`."""
        self._connection = connection
        self.footing = footing

    async def rows(self, table: str, wanted: Wanted) -> AsyncIterator[dict[str, Any]]:
        """Yield the rows that are shown of a read model's table."""
        statement = SHOWN[table].on(_SCRATCH)
        async for row in self._connection.cursor(statement, *wanted, prefetch=ROWS_AHEAD):
            shown = dict(row)
            if "partner_invoice_ids" in shown:
                shown["partner_invoice_ids"] = msgspec.json.decode(shown["partner_invoice_ids"])
            yield shown


@asynccontextmanager
async def replayed(
    ledger: Ledger,
    position: int,
    advance: Callable[[int], object],
    keys: Sequence[NoteKey] = (),
) -> AsyncGenerator[ReplayedState, None]:
    """Replay the events up to a position; `advance` gets the number of positions passed.

    The hash of each event is made again, and the log's hashes have to lead to the root of the first
    checkpoint that covers them all, or else of the last one, signed by one of `keys`.

    Raises LogFault where a position is missing, repeated or without its event, for an event that is
    not the one that was hashed, and for one that is not in the ledger's catalogue: a state without
    it would be wrong.
    """
    binding = await ledger.binding()
    async with (
        ledger.database.background.connection(REPLAY_SECONDS_MAX) as connection,
        rolled_back(connection, seconds_max=REPLAY_SECONDS_MAX),
    ):
        for projector in ledger.projectors:
            for table in projector.tables:
                statement = _SQL.table.on(ledger.name).replace("the_table", table.name)
                await connection.execute(statement)
        await connection.execute(_SQL.erasures_table.on(_SCRATCH))
        transaction = Transaction(ledger, connection, binding)
        goal = await _goal(connection, ledger, keys, position)
        replay = _Replay(transaction, ledger, Ascent(goal, CompactRange()))
        start = 0
        while start < position:
            end = await replay.step(start, min(start + BATCH, position))
            advance(end - start)
            start = end
        await replay.ascent.rest(connection, ledger.name, {}, position)
        size = 0 if goal is None else goal.size
        yield ReplayedState(connection, Footing(goal, max(0, position - size)))


async def _goal(
    connection: Connection, ledger: Ledger, keys: Sequence[NoteKey], position: int
) -> Checkpoint | None:
    """Return the checkpoint that the events up to a position can rest on, if there is one."""
    signed = BindingCheckpoints(connection, ledger.name, keys)
    await signed.read()
    found = await signed.cover(max(1, position))
    return await signed.last() if found is None else found[0]


class _Replay:
    """Turns a range of the log after the other into rows."""

    def __init__(self, transaction: Transaction, ledger: Ledger, ascent: Ascent) -> None:
        self.ascent = ascent
        self._transaction = transaction
        self._projectors = (*ledger.projectors, ErasedProjector())
        self._topics = sorted(_topics(self._projectors))
        self._known = frozenset(ledger.codec.topics)
        self._personal = _topics(one for one in self._projectors if one.reads_personal)

    async def step(self, start: int, end: int) -> int:
        """Replay what follows a position, up to `end` if it is not too large; return how far."""
        transaction = self._transaction
        rows = await transaction.fetch(_LOG_RANGE, start, end, self._topics, PAGE_BYTES_MAX)
        end = rows[-1]["position"] if is_full(rows) else end
        leaves = await _leaves(transaction, self._known, start, end)
        self.ascent.take(leaves)
        for row in rows:
            position = row["position"]
            check_leaf(position, leaves[position - start - 1], leaf_of(*tuple(row)[:6]))
        events = await transaction.decode(rows, personal=self._personal)
        for projector in self._projectors:
            writes = (write for event in events for write in projector.project(event))
            await apply(transaction.connection, _SCRATCH, writes)
        return end


async def _leaves(
    transaction: Transaction, known: Container[str | None], start: int, end: int
) -> list[bytes]:
    """Return the log's hashes of each position after `start`, up to `end`.

    Raises LogFault unless each has a known event.
    """
    places, leaves = await transaction.fetch(_SQL.order, start, end), list[bytes]()
    for due, place in zip_longest(range(start + 1, end + 1), places):
        position, topic, leaf = (None, None, b"") if place is None else place
        check_place(position, end + 1 if due is None else due)
        if topic not in known:
            unknown = f"{topic!r} is no event of this ledger"
            raise LogFault(position or 0, "its event is gone" if topic is None else unknown)
        leaves.append(leaf)
    return leaves


def _topics(projectors: Iterable[Projector]) -> set[str]:
    return {topic.__name__ for projector in projectors for topic in projector.topics}
