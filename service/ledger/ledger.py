"""Appending to a ledger and reading its streams."""

import asyncio
import math
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Container,
    Generator,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import InitVar, dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

import msgspec
import structlog
from asyncpg import UniqueViolationError

from service.core.clock import Clock, to_milliseconds
from service.ledger.binding import BOUND_TOPIC, Binding, binding_of, boundary_stream
from service.ledger.codec import Codec
from service.ledger.database import (
    AlreadyExists,
    Connection,
    Database,
    LedgerError,
    LedgerUnavailable,
    Row,
    SchemaChanged,
    always,
    transaction_on,
)
from service.ledger.decoding import StoredEvent, StoredRow, Unread, decode
from service.ledger.encryption import DataKey, MasterKeys
from service.ledger.event_macs import EventKeys
from service.ledger.events import Catalogue, Event, Meta, Recorded
from service.ledger.folding import Folding, KeptState, KeptStates, Source, read_on
from service.ledger.projector import Projector, Write, arrays, runs
from service.ledger.service_keys import EventRoots, GetSecrets
from service.ledger.sql import Sql, queries
from service.ledger.writing import Append, Decided, Outcome, Proposal, WriteBatch, lock_number

T = TypeVar("T")
E = TypeVar("E", bound=StoredRow)
S = TypeVar("S")

ATTEMPTS_MAX: Final = 8
"""How often a command that conflicts is decided again before it is given up."""

UNBOUND_SECONDS: Final = 60.0
"""How often a process asks whether events are bound by now, where they were not."""

LOCKED_SECONDS: Final = 0.005
LOCKED_SECONDS_MAX: Final = 0.1

_SQL = queries("service.ledger")

log = structlog.get_logger()


class StreamPart(NamedTuple):
    """Which events of streams are read, if reading all of them would be unbounded.

    Events of more than `bytes_max` bytes are left out. At most `versions_max` are considered in
    each stream, and at most `events_max` are read in total.
    """

    topics: Sequence[type[Event]]
    versions_max: int
    bytes_max: int
    events_max: int


class AppendConflict(LedgerError):
    """A stream was not at the expected version: another command came first. Decide again."""


class NotAppended(LedgerUnavailable):
    """PostgreSQL says that it wrote an event, and has given it no id: something else drops rows."""


class PublicIdTaken(LedgerError):
    """A freshly drawn public id exists already; a retry draws another."""


class StreamLocked(LedgerError):
    """Another command holds a stream that this one needs. Nothing was written; try again."""


@dataclass(eq=False)
class Ledger:
    """One of the three ledgers: accounts, live or test.

    `projectors` write in the transaction of the append. `secrets` are the service's own: by them,
    events are bound to it. `on_append` wakes the sequencer, where this process has one.
    """

    database: Database
    catalogue: InitVar[Catalogue]
    projectors: Sequence[Projector]
    master_keys: MasterKeys
    clock: Clock
    secrets: GetSecrets

    def __post_init__(self, catalogue: Catalogue) -> None:
        """Name the ledger after its schema."""
        self.name = self.database.schema
        self.on_append: Callable[[], None] = lambda: None
        self.codec = Codec(self.name, catalogue)
        self._event_keys: tuple[EventRoots, EventKeys] | None = None
        self._binding: Binding | None = None
        self._asked_at = 0.0
        self.kept = KeptStates()

    async def reachable(self) -> None:
        """Read from a table that only grows; raises LedgerUnavailable.

        Queues have a dead row for each entry that was removed since anybody's oldest snapshot.
        """
        await self.database.reads.fetchrow(_SQL.any_event)

    async def event_keys(self, *, anew: bool = False) -> EventKeys:
        """Return the keys that bind events to the service: from memory, unless `anew`."""
        roots, known = (await self.secrets(anew=anew)).events, self._event_keys
        if known is None or known[0] is not roots:
            known = self._event_keys = roots, roots.of_ledger(self.name)
        return known[1]

    async def has_other_keys(self, known: EventKeys) -> bool:
        """Read the event keys again; return whether they are others than those `known` to be.

        `known` are the keys by which something was judged: this process may have read others since.
        """
        return await self.event_keys(anew=True) is not known

    async def binding(self) -> Binding:
        """Return how to recognise events: from memory, once only the newest key binds later ones.

        Until then, the log is read from time to time to find out whether that is so; and each time
        where an event key does not open, as that may have retired those that this process has.
        """
        now = asyncio.get_running_loop().time()
        keys, known = await self.event_keys(), self._binding
        if known is not None and known.keys is not keys:
            known = known._replace(keys=keys)
        if known is None:
            known = binding_of(self.name, keys, ())
            self._asked_at = -math.inf
        is_due = not keys.are_all or now > self._asked_at + UNBOUND_SECONDS
        if is_due and not known.is_settled:
            known = binding_of(self.name, keys, await self.database.reads.fetch(*self.bound))
            self._asked_at = now
        if known.is_overtaken and not (self._binding and self._binding.is_overtaken):
            log.error("event key missing", ledger=self.name)
        self._binding = known
        return known

    async def placing(self, events: Iterable[tuple[int | None, bytes | None]]) -> Binding:
        """Return how to recognise some events, given their append_ids and MACs.

        It looks positions up where a key was retired, and asks nothing otherwise.
        """
        return await (await self.binding()).placing(self.database.reads.fetch, events)

    async def ours(self, stored: Sequence[E]) -> list[E]:
        """Return those of stored events, with their positions and MACs, that this service wrote."""
        binding = await self.binding()
        found = binding.ours(stored)
        if len(found) < len(stored) and await self.has_other_keys(binding.keys):
            return (await self.binding()).ours(stored)  # of a key that was not known yet
        return found

    @property
    def bound(self) -> tuple[Sql, UUID, str]:
        """What finds where the log says that later events are bound: a statement, its arguments."""
        return _SQL.bound, boundary_stream(self.name), BOUND_TOPIC

    @asynccontextmanager
    async def transaction(
        self, *, background: float | None = None
    ) -> AsyncGenerator["Transaction", None]:
        """Open the one transaction of a command that `write` cannot write.

        `background` seconds where no request waits for it.

        Raises AppendConflict or PublicIdTaken if nothing was written. After LedgerUnavailable that
        is unknown until the command is repeated.
        """
        pool = self.database.writes if background is None else self.database.background
        binding = await self.binding()
        with _conflicts():
            async with pool.transaction(background) as connection:
                transaction = Transaction(self, connection, binding)
                yield transaction
        if transaction.appended:
            self.on_append()

    async def read(self, stream_id: UUID) -> list[Recorded]:
        """Return a stream as `Transaction.read` does, where nothing is written."""
        binding = await self.binding()
        async with self.database.reads.connection() as connection:
            return await Transaction(self, connection, binding).read(stream_id)

    async def fold(self, stream_id: UUID, folding: Folding[S]) -> S:
        """Return a stream's state as `Transaction.fold` does, where nothing is written."""
        keep, kept = partial(self.kept.put, stream_id, folding), self.kept.get(stream_id, folding)
        return (await read_on(await self._source(), stream_id, folding, kept, keep)).state

    async def read_on(
        self,
        stream_id: UUID,
        folding: Folding[S],
        kept: KeptState[S] | None,
        keep: Callable[[KeptState[S]], None],
    ) -> KeptState[S]:
        """Return a stream's state as `fold` does, for a caller that keeps its states itself."""
        return await read_on(await self._source(), stream_id, folding, kept, keep)

    async def _source(self) -> Source:
        return Source(await self.binding(), self.codec, self.database.reads.fetch, self.opened)

    async def read_part(self, streams: Sequence[UUID], part: StreamPart) -> list[Recorded]:
        """Return a part of some streams as `Transaction.read` does, where nothing is written."""
        binding = await self.binding()
        async with self.database.reads.connection() as connection:
            return await Transaction(self, connection, binding).read_part(streams, part)

    async def write(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """Write what commands decided in one round trip; return the outcome of each.

        Each is all or nothing, and none waits for a lock. Raises AppendConflict or PublicIdTaken,
        with nothing written, if another command came in between; LedgerUnavailable as above.
        """
        batch = WriteBatch(self.drafts, self.projectors, (await self.binding()).writing)
        for proposal in proposals:
            batch.propose(proposal)
        sql, arguments = batch.statement()
        with _conflicts():
            row = always(await self.database.writes.fetchrow(sql, *arguments))
        outcomes: list[Outcome] = row["outcomes"]
        if batch.lacks(outcomes, row["append_ids"] or ()):
            raise NotAppended(self.name)
        if "written" in outcomes:
            self.on_append()
        return outcomes

    async def decide_and_write(self, decide: Callable[[], Awaitable[Decided[T]]]) -> T:
        """Write what a command decides on what it reads without a lock; return its result.

        It decides again when another command came first, and tries again while one of its streams
        is locked, up to the deadline. Raises AppendConflict, PublicIdTaken or StreamLocked.
        """
        clock = asyncio.get_running_loop().time
        ends_at, conflicts, locked = clock() + self.database.writes.deadline_seconds, 0, 0
        while True:
            decided = await decide()
            if decided.proposal is None:
                return decided.result
            try:
                (outcome,) = await self.write([decided.proposal])
                if decided.is_settled_by(outcome):
                    return decided.result
                raise StreamLocked(outcome) if outcome == "locked" else AppendConflict(outcome)
            except StreamLocked:
                seconds = locked_seconds(locked)
                if clock() + seconds > ends_at:
                    raise
                locked += 1
                await asyncio.sleep(seconds)
            except (AppendConflict, PublicIdTaken):
                conflicts += 1
                if conflicts == ATTEMPTS_MAX:
                    raise

    async def now(self) -> datetime:
        """Return the time by the database's clock, in whole milliseconds."""
        row = always(await self.database.reads.fetchrow(_SQL.now))
        return to_milliseconds(row["now"])

    async def decode(
        self,
        rows: Iterable[StoredRow],
        *,
        personal: bool = True,
        unread: list[Unread] | None = None,
    ) -> list[Recorded]:
        """Decode stored events as `Transaction.decode` does, for what needs no transaction."""
        return await decode(self.codec, self._data_keys, rows, personal=personal, unread=unread)

    async def _data_keys(self, key_ids: Iterable[UUID]) -> dict[UUID, DataKey]:
        asked = list(key_ids)
        rows = await self.database.background.fetch(_SQL.data_keys, asked) if asked else []
        return self.opened(rows)

    def opened(self, rows: Iterable[Row]) -> dict[UUID, DataKey]:
        """Return stored data keys, unwrapped, by their ids. Raises KeyUnknown."""
        return {row["key_id"]: self.master_keys.open_data_key(*row) for row in rows}

    def drafts(self, append: Append) -> Iterable[tuple[Recorded, bytes]]:
        """Return an append's events as they will be recorded, and as they are stored."""
        cause = append.cause
        meta = Meta(self.clock(), cause.actor, cause.request_id, self.name)
        for version, event in enumerate(append.events, append.expected_version + 1):
            state = self.codec.encode(append.stream_id, version, event, meta, append.key)
            yield Recorded(0, append.stream_id, version, event, meta), state

    async def decide(
        self,
        attempt: Callable[["Transaction"], Awaitable[T]],
        *,
        background: float | None = None,
    ) -> T:
        """Run a command in one transaction; decide again when another command came first."""
        for _ in range(ATTEMPTS_MAX - 1):
            with suppress(AppendConflict, PublicIdTaken):
                async with self.transaction(background=background) as transaction:
                    return await attempt(transaction)
        async with self.transaction(background=background) as transaction:
            return await attempt(transaction)


class Transaction:
    """What a command can do inside its transaction. Lock, then draw (decision 3)."""

    def __init__(self, ledger: Ledger, connection: Connection, binding: Binding) -> None:
        """Made by `Ledger.transaction`."""
        self._ledger = ledger
        self.binding = binding
        self._schema = self.ledger_name = ledger.name
        self.connection = connection
        self.appended = False

    async def lock(self, *keys: UUID) -> None:
        """Wait for exclusive locks, held until the transaction ends."""
        await self.fetch(_SQL.lock, sorted({lock_number(key) for key in keys}))

    async def lock_shared(self, keys: Iterable[UUID]) -> None:
        """Wait for shared locks, which exclude exclusive ones alone."""
        await self.fetch(_SQL.lock_shared, sorted({lock_number(key) for key in keys}))

    async def now(self) -> datetime:
        """Return the time by the database's clock, in whole milliseconds."""
        now: datetime | None = await self.connection.fetchval(_SQL.now.on(self._schema))
        return to_milliseconds(always(now))

    async def fetch(self, sql: Sql, *args: object) -> list[Row]:
        """Return the rows of one statement, seen by this transaction."""
        return await self.connection.fetch(sql.on(self._schema), *args)

    async def fetchrow(self, sql: Sql, *args: object) -> Row | None:
        """Return the first row of one statement, if any."""
        return await self.connection.fetchrow(sql.on(self._schema), *args)

    async def read(self, stream_id: UUID) -> list[Recorded]:
        """Return a stream, oldest first, personal fields opened where their key exists.

        Raises UnboundEvent where another than this service wrote an event of it.
        """
        rows = await self.fetch(_SQL.stream, stream_id)
        return await self._checked((stream_id, *row) for row in rows)

    async def fold(self, stream_id: UUID, folding: Folding[S]) -> S:
        """Return a stream's state, reading only what follows the state that the process keeps.

        Raises UnboundEvent as `read` does. What this transaction has appended is not kept: it may
        never be committed.
        """
        ledger, states = self._ledger, self._ledger.kept
        source = Source(self.binding, ledger.codec, self.fetch, ledger.opened)
        known = states.get(stream_id, folding)
        if self.appended:
            return (await read_on(source, stream_id, folding, known)).state
        keep = partial(states.put, stream_id, folding)
        return (await read_on(source, stream_id, folding, known, keep)).state

    async def read_part(self, streams: Sequence[UUID], part: StreamPart) -> list[Recorded]:
        """Return a part of some streams, each oldest first, as `read` does."""
        topics = [topic.__name__ for topic in part.topics]
        bounds = (part.versions_max, part.bytes_max, part.events_max)
        rows = await self.fetch(_SQL.part, list(streams), topics, *bounds)
        return await self._checked(tuple(row) for row in rows)

    async def read_last(
        self, stream_id: UUID, topics: Sequence[type[Event]], *, before: int
    ) -> Event | None:
        """Return a stream's last event of some topics before a version, as `read` does."""
        names = [topic.__name__ for topic in topics]
        return await self._only(await self.fetch(_SQL.last, stream_id, names, before))

    async def read_at(
        self, stream_id: UUID, version: int, topics: Sequence[type[Event]]
    ) -> Event | None:
        """Return a stream's event of a version, if it is of one of these topics, as `read` does."""
        names = [topic.__name__ for topic in topics]
        return await self._only(await self.fetch(_SQL.at, stream_id, version, names))

    async def _only(self, rows: Iterable[Row]) -> Event | None:
        return next((one.event for one in await self._checked(tuple(row) for row in rows)), None)

    async def _checked(self, rows: Iterable[tuple[Any, ...]]) -> list[Recorded]:
        """Decode events, after a check of who wrote them."""
        stored, events = list(rows), list[StoredEvent]()
        binding = await self.placing((row[1], row[5]) for row in stored)
        for stream_id, append_id, version, topic, state, mac in stored:
            binding.check(append_id, stream_id, version, topic, state, mac)
            events.append(StoredEvent(0, append_id, stream_id, version, topic, state))
        return await self.decode(events)

    async def placing(self, events: Iterable[tuple[int | None, bytes | None]]) -> Binding:
        """Return how to recognise some events, as `Ledger.placing` does."""
        return await self.binding.placing(self.fetch, events)

    def are_ours(self, events: Sequence[StoredEvent]) -> bool:
        """Return whether this service wrote each of the events, numbered or not."""
        return len(self.binding.ours(events)) == len(events)

    async def has_other_keys(self) -> bool:
        """Read the event keys again; return whether others are known than this began with."""
        return await self._ledger.has_other_keys(self.binding.keys)

    async def exists(self, stream_id: UUID) -> bool:
        """Return whether a stream has begun."""
        return bool(await self.connection.fetchval(_SQL.exists.on(self._schema), stream_id))

    async def decode(
        self,
        rows: Iterable[StoredRow],
        *,
        personal: bool | Container[str] = True,
        unread: list[Unread] | None = None,
        even_erased: bool = False,
    ) -> list[Recorded]:
        """Decode stored events, with the keys of those topics whose `personal` fields are wanted.

        Without its key, an event's personal fields are None. What cannot be read is added to
        `unread`, or raises Unreadable where that is None. `even_erased` is for searches: it opens
        also what was erased and can be opened again, because its key came back.
        """
        codec, keys_of = self._ledger.codec, self._stored_keys if even_erased else self.data_keys
        return await decode(codec, keys_of, rows, personal=personal, unread=unread)

    async def data_keys(self, key_ids: Iterable[UUID]) -> dict[UUID, DataKey]:
        """Return the data keys that still exist, in one round trip; in none for no ids.

        No key of a subject that was erased is among them, even if it came back.
        """
        return await self._keys(_SQL.data_keys, list(key_ids))

    async def data_key(self, stream: UUID) -> DataKey | None:
        """Return the data key of one subject, as `data_keys` does; None where it has none."""
        return (await self.data_keys([stream])).get(stream)

    async def _stored_keys(self, key_ids: Iterable[UUID]) -> dict[UUID, DataKey]:
        return await self._keys(_SQL.data_keys_stored, list(key_ids))

    async def _keys(self, sql: Sql, asked: list[UUID]) -> dict[UUID, DataKey]:
        return self._ledger.opened(await self.fetch(sql, asked) if asked else [])

    async def append(self, *appends: Append) -> list[Recorded]:
        """Append to the log and to the inline read models; all or nothing.

        Streams are written in one order, so that two transactions cannot wait for each other.
        """
        batch = WriteBatch(self._ledger.drafts, self._ledger.projectors, self.binding.writing)
        rest = batch.add(sorted(appends, key=lambda append: append.stream_id.bytes))
        sql, arguments = batch.statement()
        row = always(await self.fetchrow(sql, *arguments))
        if batch.lacks(row["outcomes"], row["append_ids"] or ()):
            raise NotAppended(self.ledger_name)
        recorded = [
            msgspec.structs.replace(draft, append_id=append_id)
            for draft, append_id in zip(batch.recorded, row["append_ids"] or (), strict=True)
        ]
        if rest:  # projected again, now that the append_ids are known
            await self.project(recorded)
        self.appended = True
        return recorded

    async def project(self, events: Sequence[Recorded]) -> None:
        """Write what events change in the inline read models."""
        projectors = self._ledger.projectors
        await self.write(
            write for event in events for one in projectors for write in one.project(event)
        )

    async def project_again(self, events: Sequence[Recorded]) -> None:
        """Write the rows of events that came back, unless they are there still."""
        for event in events:
            with suppress(UniqueViolationError):
                async with transaction_on(self.connection):  # a savepoint
                    await self.project([event])

    async def write(self, writes: Iterable[Write]) -> None:
        """Run read-model writes in order; a run of the same statement is one round trip."""
        for statement, rows in runs(writes):
            await self.connection.execute(statement.on(self._schema), *arrays(rows))


def locked_seconds(tries: int) -> float:
    """Return how long to wait after so many tries for a stream that another command holds."""
    return min(LOCKED_SECONDS * 2**tries, LOCKED_SECONDS_MAX)


@contextmanager
def _conflicts() -> Generator[None]:
    """Convert the violation of a unique constraint to the conflict that it means.

    A migration that came in between is a conflict, too: nothing was written, and the next attempt
    prepares its statements again.
    """
    try:
        yield
    except AlreadyExists as error:
        if error.constraint == "public_ids_pkey":
            raise PublicIdTaken(str(error)) from error
        raise AppendConflict(str(error)) from error
    except SchemaChanged as error:
        raise AppendConflict(str(error)) from error
