"""States folded from streams, kept in the process: only events behind a kept state are read.

A kept state is never returned before the log was asked again: it has to have the event that the
state ends with, unchanged, and the data keys that opened it have to be those that still exist. A
state of events that a failover or a restore has taken back is dropped, and so is what shows data
that were erased since.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from service.ledger.binding import Binding, Boundary
from service.ledger.codec import Codec
from service.ledger.database import Row
from service.ledger.decoding import StoredEvent, decode
from service.ledger.encryption import DataKey
from service.ledger.events import Recorded
from service.ledger.sql import queries

S = TypeVar("S")

PAGE_EVENTS: Final = 500
"""Events that are decoded at a time (some 5 ms): other requests pass between two pages."""
STATES_MAX: Final = 2_000
PARTS_MAX: Final = 100_000
"""Of all kept states together, as their foldings count them; one takes some 300 bytes."""
SHARES: Final = 4
"""One state has at most this part of them all, or it would push out all others."""
UNUSED_SECONDS: Final = 600.0
"""How long a state is kept that nobody asks for: it may have personal data in the clear."""

_SQL = queries("service.ledger")


@dataclass(frozen=True, slots=True, eq=False)
class Folding(Generic[S]):
    """How a state is folded from a stream.

    `fold` is pure: it returns `begin`, or a later state, as it is after further events. `parts` is
    about how many things a state has, by which the memory of all is bounded. `topics` are the names
    of the events that count, None: all. Without `personal`, no personal field is opened.
    """

    begin: S
    fold: Callable[[S, Sequence[Recorded]], S]
    parts: Callable[[S], int] = lambda _state: 1
    topics: Sequence[str] | None = None
    personal: bool = True


class KeptState(NamedTuple, Generic[S]):
    """A state, and what has to be found again for it to count.

    `mark` is of its last event: the append_id, which can be drawn again after a restore, and the
    MAC. `boundaries` say since when events were bound as it was folded. `asked` are the data keys
    of its personal fields, `opened` those that were there.
    """

    state: S
    boundaries: Sequence[Boundary]
    version: int = 0
    mark: tuple[int, bytes] = (0, b"")
    asked: frozenset[UUID] = frozenset()
    opened: frozenset[UUID] = frozenset()


class Source(NamedTuple):
    """From where streams are read: a transaction, or a pool."""

    binding: Binding
    codec: Codec
    fetch: Callable[..., Awaitable[Sequence[Row]]]
    unwrapped: Callable[[Iterable[Row]], dict[UUID, DataKey]]


class KeptStates:
    """The states that were used last, bounded in their number, their parts and their age."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[UUID, Folding[Any]], tuple[float, KeptState[Any]]] = (
            OrderedDict()
        )
        self._parts = 0

    def get(self, stream_id: UUID, folding: Folding[S]) -> KeptState[S] | None:
        """Return what is kept of a stream, if anything is."""
        self._drop_unused()
        found = self._kept.get((stream_id, folding))
        return found and found[1]

    def put(self, stream_id: UUID, folding: Folding[S], kept: KeptState[S]) -> None:
        """Keep a state in place of an earlier one; those used longest ago make room.

        Of one that is too large the earlier state stays, and is read on from each time.
        """
        if folding.parts(kept.state) > PARTS_MAX // SHARES:
            return
        self._drop(stream_id, folding)
        if not kept.version:
            return
        self._kept[stream_id, folding] = asyncio.get_running_loop().time(), kept
        self._parts += folding.parts(kept.state)
        while len(self._kept) > STATES_MAX or self._parts > PARTS_MAX:
            self._drop(*next(iter(self._kept)))

    def _drop_unused(self) -> None:
        until = asyncio.get_running_loop().time() - UNUSED_SECONDS
        while self._kept and next(iter(self._kept.values()))[0] < until:
            self._drop(*next(iter(self._kept)))

    def _drop(self, stream_id: UUID, folding: Folding[Any]) -> None:
        found = self._kept.pop((stream_id, folding), None)
        if found is not None:
            self._parts -= folding.parts(found[1].state)


async def read_on(
    source: Source,
    stream_id: UUID,
    folding: Folding[S],
    kept: KeptState[S] | None,
    keep: Callable[[KeptState[S]], None] = lambda _kept: None,
) -> KeptState[S]:
    """Return a stream's state, given what was kept of it; `keep` is called after each page.

    Raises UnboundEvent where another than this service wrote an event behind the kept ones.
    """
    begin = KeptState(folding.begin, source.binding.boundaries)
    if kept is None or kept.boundaries != begin.boundaries:
        kept = begin
    while True:
        topics = None if folding.topics is None else list(folding.topics)
        rows = await source.fetch(_SQL.stream_on, stream_id, kept.version, topics, PAGE_EVENTS)
        grown = await _grown(source, stream_id, folding, kept, rows)
        kept = begin if grown is None else grown
        keep(kept)
        if grown is not None and len(rows) < PAGE_EVENTS:
            return kept


async def _grown(
    source: Source, stream_id: UUID, folding: Folding[S], kept: KeptState[S], rows: Sequence[Row]
) -> KeptState[S] | None:
    """Return a state with the events of rows that begin with its last one; None: fold it anew."""
    if kept.version:
        if not rows or (rows[0]["originator_version"], _mark(rows[0])) != (kept.version, kept.mark):
            return None
        rows = rows[1:]
    events: list[StoredEvent] = []
    placed = ((row["append_id"], row["mac"]) for row in rows)
    binding = await source.binding.placing(source.fetch, placed)
    for append_id, version, topic, state, mac in rows:
        binding.check(append_id, stream_id, version, topic, state, mac)
        events.append(StoredEvent(0, append_id, stream_id, version, topic, state))
    asked, opened = kept.asked, frozenset[UUID]()

    async def keys_of(further: set[UUID]) -> dict[UUID, DataKey]:
        nonlocal asked, opened
        asked |= further
        found = source.unwrapped(await source.fetch(_SQL.data_keys, list(asked)) if asked else ())
        opened = frozenset(found)
        return found

    recorded = await decode(source.codec, keys_of, events, personal=folding.personal, unread=None)
    if opened & kept.asked != kept.opened:
        return None
    if not rows:
        return kept
    state = folding.fold(kept.state, recorded)
    version = rows[-1]["originator_version"]
    return KeptState(state, kept.boundaries, version, _mark(rows[-1]), asked, opened)


def _mark(row: Row) -> tuple[int, bytes]:
    """Return what tells an event from any other that has, or had, its place in the stream."""
    # An event older than MACs is told apart by all that it says, among it when and for what.
    return row["append_id"], row["state"] if row["mac"] is None else row["mac"]
