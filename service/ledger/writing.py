"""The one statement that writes what commands have decided (decision 4).

The function `write` in each ledger's schema locks, checks again and appends; the same statement
writes the rows of the read models around it. It is one round trip, and commits.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

import msgspec

from service.ledger.encryption import DataKey
from service.ledger.event_macs import EventKeys
from service.ledger.events import Cause, Event, Recorded
from service.ledger.projector import Insert, Projector, Table, Values, Write, arrays
from service.ledger.sql import Sql, queries

T = TypeVar("T")

_SQL = queries("service.ledger")
_PARAMETERS = 20
"""Of the function `write`; those of the rows follow."""

Outcome = Literal["written", "locked", "moved", "conflict", "upload_gone"]
"""What became of one command. Only `written` wrote anything.

`locked`: another holds one of its streams, try again in a moment. `moved`: a stream that it decided
on has grown, and `conflict`: one that it appends to has; decide again.
"""


class Append(NamedTuple):
    """Events for one stream.

    `expected_version` is that of the stream's last event, 0 for a new stream. `key` seals personal
    fields; `new_key` stores it. `public_ids` are ids that partners see, drawn for this append.
    """

    stream_id: UUID
    expected_version: int
    events: Sequence[Event]
    cause: Cause
    key: DataKey | None = None
    new_key: bool = False
    public_ids: Sequence[str] = ()


class Guard(NamedTuple):
    """A stream that a command decided on, at this version; 0 if it had not begun."""

    stream_id: UUID
    version: int


class Proposal(NamedTuple):
    """What one command has decided to write, all or nothing, and what the decision depends on.

    `guards` are the streams that it only read; those that it appends to are guarded in any case.
    `uploads` are paths of uploads that must not have been swept.
    """

    appends: Sequence[Append]
    guards: Sequence[Guard] = ()
    uploads: Sequence[str] = ()


class Decided(NamedTuple, Generic[T]):
    """The result of a command, once its proposal is written, if it has one.

    `once`: its events may exist already, because they only record that something has happened.
    """

    result: T
    proposal: Proposal | None = None
    once: bool = False

    def is_settled_by(self, outcome: Outcome) -> bool:
        """Return whether the result is valid, given the outcome of the proposal."""
        return outcome == "written" or (self.once and outcome == "conflict")


class Encode(Protocol):
    """Makes an append's events: as they will be recorded, and as they are stored."""

    def __call__(self, append: Append) -> Iterable[tuple[Recorded, bytes]]:
        """Return both forms of each event."""
        ...


class WriteBatch:
    """Proposals as the arguments of one statement.

    `recorded` are their events, in order. Until they are written, an event's append_id is its
    number in the batch: the statement puts the drawn one into the rows that refer to it.
    """

    def __init__(
        self, encode: Encode, projectors: Sequence[Projector], event_keys: EventKeys
    ) -> None:
        """Begin empty; `event_keys` make the events' MACs."""
        self._encode = encode
        self._mac = event_keys.mac
        self._projectors = projectors
        self._commands = count(1)
        self._guards: list[tuple[int, UUID, int, bool, int]] = []
        self._uploads: list[tuple[str, int]] = []
        self._events: list[tuple[UUID, int, str, bytes, bytes, int]] = []
        self._public_ids: list[tuple[str, int]] = []
        self._keys: list[tuple[UUID, bytes, str, int]] = []
        self._rows: dict[Table, list[Values]] = {}
        self._size = 0
        self.recorded: list[Recorded] = []

    def propose(self, proposal: Proposal) -> None:
        """Add a command that takes its locks, and checks again what its decision depends on."""
        own = [Guard(append.stream_id, append.expected_version) for append in proposal.appends]
        nr = self._size + 1
        for guards, is_own in ((proposal.guards, False), (own, True)):
            self._guards += [
                (lock_number(stream), stream, version, is_own, nr) for stream, version in guards
            ]
        self._uploads += [(path, nr) for path in proposal.uploads]
        rest = self.add(proposal.appends)
        if rest:
            raise TypeError(f"{rest[0].statement.name} needs a transaction")

    def add(self, appends: Sequence[Append]) -> list[Write]:
        """Add a command without guards; return the writes that have to follow the statement.

        Those are all of its writes where one of them is an update, so that they keep their order.
        """
        self._size = nr = self._size + 1
        writes: list[Write] = []
        for append in appends:
            for draft, state in self._encode(append):
                recorded = msgspec.structs.replace(draft, append_id=len(self.recorded) + 1)
                self.recorded.append(recorded)
                topic = type(recorded.event).__name__
                stored = (recorded.stream_id, recorded.version, topic, state)
                self._events.append((*stored, self._mac(*stored), nr))
                for projector in self._projectors:
                    writes += projector.project(recorded)
            self._public_ids += [(public_id, nr) for public_id in append.public_ids]
            if append.new_key and append.key is not None:
                key = append.key
                self._keys.append((key.key_id, key.wrapped, key.master_key_id, nr))
        inserts = [write for write in writes if isinstance(write, Insert)]
        if len(inserts) < len(writes):
            return writes
        for insert in inserts:
            self._rows.setdefault(insert.table, []).append((nr, *insert.row))
        return []

    def lacks(self, outcomes: Sequence[Outcome], append_ids: Sequence[int | None]) -> bool:
        """Return whether an event has no id although its command was written."""
        if len(append_ids) != len(self._events):
            return True
        return None in append_ids and any(
            append_id is None and outcomes[event[-1] - 1] == "written"
            for append_id, event in zip(append_ids, self._events, strict=True)
        )

    def statement(self) -> tuple[Sql, list[object]]:
        """Return the statement and its arguments."""
        columns = (
            (self._guards, 5),
            (self._uploads, 2),
            (self._events, 6),
            (self._public_ids, 2),
            (self._keys, 4),
        )
        arguments: list[object] = [self._size]
        for values, width in columns:
            arguments += arrays(values) or [[] for _ in range(width)]
        for rows in self._rows.values():
            arguments += arrays(rows)
        return statement_for(tuple(self._rows)), arguments


@cache
def statement_for(tables: tuple[Table, ...]) -> Sql:
    """Return the statement that also adds rows to these tables."""
    if not tables:
        return _SQL.write
    parts = [f"with written as materialized (\n{_SQL.write.text}\n)"]
    place = _PARAMETERS
    for table in tables:
        kinds = ("int", *table.kinds)
        arrays_of = ", ".join(f"${place + nr}::{kind}[]" for nr, kind in enumerate(kinds, 1))
        place += len(kinds)
        values = ", ".join(
            "w.append_ids[r.append_id::int]" if column == "append_id" else f"r.{column}"
            for column in table.columns
        )
        parts.append(
            f"add_to_{table.name} as (\n"  # noqa: S608 - names of our own tables
            f"    insert into ledger.{table.name} ({', '.join(table.columns)})\n"
            f"    select {values}\n"
            f"    from written as w, unnest({arrays_of})\n"
            f"        as r (command_nr, {', '.join(table.columns)})\n"
            f"    where w.outcomes[r.command_nr] = 'written'{table.on_conflict}\n)"
        )
    text = ", ".join(parts) + "\nselect outcomes, append_ids from written"
    return Sql(_SQL.write.name, _SQL.write.description, text)


def lock_number(key: UUID) -> int:
    """Return 64 bits of the id: PostgreSQL's advisory locks are numbered, database-wide."""
    return int.from_bytes(key.bytes[8:], "big", signed=True)
