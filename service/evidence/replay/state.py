"""The state of a ledger as of any position, from its numbered events alone.

The projectors of the read models write into temporary tables of the same shape, in a transaction
that is rolled back: no row of a read model is read or written. Positions decide what had happened.
A time only chooses the position (moment.py).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Container, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import msgspec

from service.core.garbage import collector_paused
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.evidence.replay.footing import Ascent, BindingCheckpoints, Footing, check_leaf
from service.evidence.replay.log_fault import LogFault, check_place, refuse_foreign
from service.evidence.replay.pages import ReplayPage, pages
from service.evidence.replay.wanted import EVERYTHING, Wanted
from service.evidence.rolled_back import rolled_back
from service.facts.privacy import PersonalDataErased
from service.ledger.database import Connection
from service.ledger.decoding import StoredEvent
from service.ledger.events import Recorded
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange, leaf_of
from service.ledger.projector import Insert, Projector, Table, Write
from service.ledger.rebuild.apply import apply
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

ROWS_AHEAD: Final = 200
"""Rows of a read model that are read at once."""
REPLAY_SECONDS_MAX: Final = 6 * 3600.0

_SCRATCH: Final = "pg_temp"
_SQL = queries("service.evidence.replay")

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


class ReplayedState:
    """The outcome of a replay, readable while its transaction is open, and the evidence for it."""

    def __init__(self, connection: Connection, footing: Footing, wanted: Wanted) -> None:
        """Made by `replayed`."""
        self._connection = connection
        self._wanted = wanted
        self.footing = footing

    async def rows(self, table: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the rows that are shown of a read model's table."""
        statement = SHOWN[table].on(_SCRATCH)
        cursor = await self._connection.cursor(statement, *self._wanted)
        while rows := await cursor.fetch(ROWS_AHEAD):
            for row in rows:
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
    wanted: Wanted = EVERYTHING,
    *,
    published: Checkpoint | None = None,
) -> AsyncGenerator[ReplayedState, None]:
    """Replay the events up to a position; `advance` gets the number of positions passed.

    The hash of each event is made again, and the log's hashes have to lead to the root of the first
    checkpoint that covers them all, or else of the last one, signed by one of `keys`. The database
    has to have the newest `published` one. The MACs of events beyond it are checked. Every event
    that a row can come of is decoded, and those that `wanted` needs make rows.

    Raises LogFault where a position is missing, repeated or without its event, for an event that is
    not the one that was hashed, or that this service did not write, and for one that is not in the
    ledger's catalogue: a state without it would be wrong.
    """
    binding = await ledger.binding()
    async with (
        ledger.database.background.connection(REPLAY_SECONDS_MAX) as connection,
        rolled_back(connection, seconds_max=REPLAY_SECONDS_MAX),
    ):
        for projector in ledger.projectors:
            for table in projector.tables:
                await _scratch(connection, ledger.name, table)
        await connection.execute(_SQL.erasures_table.on(_SCRATCH))
        transaction = Transaction(ledger, connection, binding)
        signed = BindingCheckpoints(connection, ledger.name, keys, published)
        goal = await _goal(signed, position)
        size = 0 if goal is None else goal.size
        ascent = Ascent(goal, CompactRange())
        replay = _Replay(transaction, ledger, ascent, wanted)
        with collector_paused():
            async with aclosing(pages(ledger.database, position, size)) as log:
                async for page in log:
                    await replay.take(page)
                    advance(page.end - page.start)
        await ascent.rest(connection, ledger.name, {}, position)
        yield ReplayedState(connection, Footing(goal, max(0, position - size)), wanted)


async def _scratch(connection: Connection, schema: str, table: Table) -> None:
    """Make a table like a read model's, with its primary key: updates find their rows by that."""
    await connection.execute(_SQL.table.on(schema).replace("the_table", table.name))
    key = await connection.fetchval(_SQL.table_key.on(schema), f"{schema}.{table.name}")
    await connection.execute(f"alter table {_SCRATCH}.{table.name} add {key}")


async def _goal(signed: BindingCheckpoints, position: int) -> Checkpoint | None:
    """Return the checkpoint that the events up to a position can rest on, if there is one."""
    await signed.read()
    found = await signed.cover(max(1, position))
    return await signed.last() if found is None else found[0]


class _Replay:
    """Turns a page of the log after the other into rows."""

    def __init__(
        self, transaction: Transaction, ledger: Ledger, ascent: Ascent, wanted: Wanted
    ) -> None:
        self._transaction = transaction
        self._ledger = ledger
        self._ascent = ascent
        self._needs = None if wanted == EVERYTHING else wanted.needs
        self._projectors = (*ledger.projectors, ErasedProjector())
        self._topics = _topics(self._projectors)
        self._made_by = {
            topic: [one for one in self._projectors if topic in one.topics]
            for topic in {topic for one in self._projectors for topic in one.topics}
        }
        self._known = frozenset(ledger.codec.topics)
        self._personal = _topics(one for one in self._projectors if one.reads_personal)

    async def take(self, page: ReplayPage) -> None:
        """Check each event of a page, and apply those that are needed."""
        self._ascent.take(_leaves(page, self._known))
        if page.end > self._ascent.goal_size:
            await refuse_foreign(self._ledger, _unsigned(page, self._ascent.goal_size))
        used = [row for row in page.rows if row["topic"] in self._topics]
        events = await self._transaction.decode(used, personal=self._personal)
        needs, made_by = self._needs, self._made_by
        writes = (
            write
            for one in events
            if needs is None or needs(one.event)
            for projector in made_by[type(one.event)]
            for write in projector.project(one)
        )
        await apply(self._transaction.connection, _SCRATCH, writes)


def _unsigned(page: ReplayPage, after: int) -> list[StoredEvent]:
    return [StoredEvent(*row[:7]) for row in page.rows if row["position"] > after]


def _leaves(page: ReplayPage, known: Container[str | None]) -> list[bytes]:
    """Return the hash of each position.

    Raises LogFault unless each has a known event, which is the one that was hashed there.
    """
    leaves = list[bytes]()
    for due, row in enumerate(page.rows, page.start + 1):
        position, append_id, stream, version, topic, state, _, logged = row
        if position != due:
            check_place(position, due)
        if topic not in known:
            unknown = f"{topic!r} is no event of this ledger"
            raise LogFault(position, "its event is gone" if topic is None else unknown)
        leaf = leaf_of(position, append_id, stream, version, topic, state)
        if leaf is None or leaf != logged:
            check_leaf(position, logged, leaf)
        leaves.append(logged)
    if len(leaves) < page.end - page.start:
        check_place(None, page.start + len(leaves) + 1)
    return leaves


def _topics(projectors: Iterable[Projector]) -> set[str]:
    return {topic.__name__ for projector in projectors for topic in projector.topics}
