"""Timelines: what happened to a thing or by a request, complete however far activity has come."""

import math
from collections.abc import Container, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from projections.activity.projector import subjects
from service.ledger.codec import DAMAGE, State, stored_form
from service.ledger.database import Row, always
from service.ledger.decoding import PAGE_BYTES_MAX, StoredEvent
from service.ledger.erased import erased
from service.ledger.events import Meta, Unreadable
from service.ledger.ledger import Ledger
from service.ledger.merkle import leaf_of
from service.ledger.sql import queries

READ_SECONDS_MAX = 600.0
"""Where activity is far behind, the rest of the log is read instead."""

LOOKED_AT_MAX = 20_000
"""Rows about an id that are looked through for those that are wanted, of each ledger a page: some
tens of milliseconds."""

BEYOND_MAX: Final = 50_000
"""Events that activity has not come to, of which a page searches the states: some tenths of a
second."""

LOST: Final = (
    "The log has events that name {}, which the read model `activity` has lost: "
    "`projections rebuild activity` makes it anew."
)
"""What there is to say where a whole log has what its index has not."""

_SQL = queries("projections.activity")


class TimelineEntry(NamedTuple):
    """An event of a timeline.

    `position` is None before it is numbered. `data` are the fields in the clear, as they were
    recorded; `personal` names the sealed ones, each `sealed`, `erased` or
    `key missing`: gone, and no erasure of this service says so. `meta` and `data` are
    None where the stored event is damaged, or gone. `leaf` is the hash that the log has to have of
    it. `is_ours`: its MAC shows that this service wrote it.
    """

    ledger: str
    position: int | None
    topic: str
    meta: Meta | None
    data: Mapping[str, Any] | None
    personal: Mapping[str, str]
    leaf: bytes | None = None
    is_ours: bool = True
    is_gone: bool = False


class TimelineFilter(NamedTuple):
    """Which events of a timeline: those of one topic, and by one kind of actor; None: any."""

    topic: str | None = None
    by: str | None = None


EVERYTHING = TimelineFilter()


class Timeline(NamedTuple):
    """Events, oldest first.

    `looked_to`: nothing before this position was looked at, for there was too much; None: all was.
    """

    entries: list[TimelineEntry]
    looked_to: int | None


class ActivityReader:
    """Timelines of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def timeline(
        self, subject: str, entries_max: int, before: int | None = None
    ) -> list[TimelineEntry]:
        """Return the newest events about an id of ours, or of a request; oldest first.

        With `before`, only those whose position is less than it.
        """
        return (await self.wanted(subject, entries_max, before)).entries

    async def wanted(
        self,
        subject: str,
        entries_max: int,
        before: int | None = None,
        wanted: TimelineFilter = EVERYTHING,
        *,
        search: bool = False,
        beyond_max: int | None = None,
    ) -> Timeline:
        """Return the newest of those that are wanted, as `timeline` does.

        With `search`, of all that the log has, whatever the read model knows of it. With
        `beyond_max`, of no more events than that where activity has not come to them.
        """
        schema = self._ledger.name
        is_all = wanted == EVERYTHING
        looked_at = entries_max if is_all else LOOKED_AT_MAX
        actor = wanted.by and f"{wanted.by}:"
        stored_actor = actor and f'"actor":"{actor}'.encode()
        needle = msgspec.json.encode(subject)  # as a whole value stands in a stored event
        async with self._ledger.database.background.transaction(READ_SECONDS_MAX) as connection:
            # Before the rest: what activity takes in meanwhile is read from the log, not missed.
            come = always(await connection.fetchrow(_SQL.reached.on(schema)))
            reached = 0 if search else come["position"]
            bound = _bound(come["size"], before, beyond_max)
            if is_beyond := bound > reached:
                reached = bound
            rows = await connection.fetch(
                _SQL.timeline.on(schema),
                *(subject, needle, entries_max, reached, before),
                *(wanted.topic, actor, 0 if is_beyond else looked_at, stored_actor),
            )
            if is_beyond:  # what is parked below follows on the page that comes to it
                rows = [row for row in rows if (row["position"] or math.inf) > reached]
            found = [(row, _stored(row)) for row in reversed(rows)]
            about = partial(self._is_about, subject, actor)
            found = [(row, stored) for row, stored in found if about(row, stored)]
            looked_to = None
            if len(rows) == entries_max and len(found) < len(rows):
                looked_to = rows[-1]["position"]
            elif is_beyond and len(rows) < entries_max:
                looked_to = reached + 1
            elif not is_all and len(rows) < entries_max:
                looked_to = await connection.fetchval(
                    _SQL.looked_to.on(schema), subject, reached, before, looked_at - 1
                )
        return Timeline(await self._entries(found), looked_to)

    async def at(self, positions: Sequence[int]) -> list[TimelineEntry]:
        """Return the events at these positions, in order; fewer where they are large.

        The log itself is read. An event that is gone is left out.
        """
        async with self._ledger.database.background.transaction(READ_SECONDS_MAX) as connection:
            rows = await connection.fetch(_SQL.at.on(self._ledger.name), positions, PAGE_BYTES_MAX)
        return await self._entries([(row, _stored(row)) for row in rows])

    async def _keys(self, found: Sequence[tuple[Row, State | None]]) -> Mapping[UUID, str]:
        """Return what became of the data keys of events."""
        sealed = {state.sealed.key for _, state in found if state and state.sealed}
        fetch = self._ledger.database.background.fetch
        rows = await fetch(_SQL.keys_left, list(sealed)) if sealed else []
        left = {row["key_id"] for row in rows}
        gone = await erased(fetch, await self._ledger.binding(), sealed - left)
        return {one: _personal(one, left, gone) for one in sealed}

    async def _entries(self, found: Sequence[tuple[Row, State | None]]) -> list[TimelineEntry]:
        keys = await self._keys(found)
        stored = [StoredEvent(*tuple(row)[:7]) for row, _ in found if not _is_gone(row)]
        ours = {one.append_id for one in await self._ledger.ours(stored)}
        return [
            self._entry(row, state, keys)._replace(
                is_ours=_is_gone(row) or row["append_id"] in ours, is_gone=_is_gone(row)
            )
            for row, state in found
        ]

    def _is_about(self, subject: str, actor: str | None, row: Row, stored: State | None) -> bool:
        """Return whether an event names the id in a field that says so; a damaged one may."""
        if row["is_known"] or stored is None:
            return True
        stream, version, topic = row[2:5]
        try:
            event, meta = self._ledger.codec.decode_stored(stream, version, topic, stored, None)
        except Exception:  # noqa: BLE001 - what cannot be read is shown, not left out
            return True
        if actor and not meta.actor.startswith(actor):
            return False
        return subject == meta.request_id or subject in subjects(event)

    def _entry(self, row: Row, stored: State | None, keys: Mapping[UUID, str]) -> TimelineEntry:
        topic, sealed = row["topic"], stored.sealed if stored else None
        data = _data(stored) if stored else None
        personal = self._ledger.codec.personal(topic)
        return TimelineEntry(
            self._ledger.name,
            row["position"],
            topic,
            meta=stored.meta if stored and data is not None else None,
            data=data,
            personal=dict.fromkeys(personal, keys[sealed.key]) if sealed else {},
            leaf=leaf_of(*tuple(row)[:6]),
        )


def _bound(size: int, before: int | None, beyond_max: int | None) -> int:
    """Return the position up to which a page does not read the log."""
    if beyond_max is None:
        return 0
    return min(size, size if before is None else before - 1) - beyond_max


def _personal(key: UUID, left: Container[UUID], gone: Container[UUID]) -> str:
    if key in left:
        return "sealed"
    return "erased" if key in gone else "key missing"


def _is_gone(row: Row) -> bool:
    return row["state"] is None


def _stored(row: Row) -> State | None:
    try:
        return None if _is_gone(row) else stored_form(row["state"])
    except Unreadable:
        return None


def _data(stored: State) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(stored.data, type=dict[str, Any])
    except DAMAGE:  # no object, or no text: the form of an event does not show that
        return None


def merged(timelines: Sequence[Sequence[TimelineEntry]]) -> list[TimelineEntry]:
    """Merge several ledgers' timelines by time, each ledger's in its own order."""
    order: list[tuple[tuple[float, int], TimelineEntry]] = []
    for ledger, timeline in enumerate(timelines):
        at = 0.0
        for entry in timeline:
            # Never before what precedes it in its ledger, whatever the clocks said.
            at = max(at, entry.meta.at.timestamp() if entry.meta else at)
            order.append(((at, ledger), entry))
    return [entry for _, entry in sorted(order, key=itemgetter(0))]
