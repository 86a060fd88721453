"""What a command does inside its transaction, and what it may meet there."""

from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

import msgspec
from asyncpg import UniqueViolationError

from service.core.clock import to_milliseconds
from service.ledger.binding import Binding
from service.ledger.codec import Codec
from service.ledger.database import (
    Connection,
    LedgerError,
    LedgerUnavailable,
    Row,
    always,
    transaction_on,
)
from service.ledger.decoding import StoredEvent, StoredRow, Unread, decode
from service.ledger.encryption import DataKey
from service.ledger.event_macs import EventKeys
from service.ledger.events import Event, Recorded
from service.ledger.folding import Folding, KeptStates, Source, read_on
from service.ledger.projector import Projector, Write, arrays, runs
from service.ledger.sql import Sql, queries
from service.ledger.writing import Append, WriteBatch, lock_number

S = TypeVar("S")

_SQL = queries("service.ledger")


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


class ItsLedger(Protocol):
    """What a transaction takes of its ledger."""

    name: str
    projectors: Sequence[Projector]
    codec: Codec
    kept: KeptStates

    async def has_other_keys(self, known: EventKeys) -> bool:
        """Read the event keys again; return whether they are others than those `known` to be."""
        ...

    def opened(self, rows: Iterable[Row]) -> dict[UUID, DataKey]:
        """Return stored data keys, unwrapped, by their ids. Raises KeyUnknown."""
        ...

    def drafts(self, append: Append) -> Iterable[tuple[Recorded, bytes]]:
        """Return an append's events as they will be recorded, and as they are stored."""
        ...


class Transaction:
    """What a command can do inside its transaction. Lock, then draw (decision 3)."""

    def __init__(self, ledger: ItsLedger, connection: Connection, binding: Binding) -> None:
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
