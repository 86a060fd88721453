"""Timelines: what happened to a thing or by a request, complete however far activity has come."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from projections.activity.projector import subjects
from service.ledger.codec import State, stored_form
from service.ledger.database import Row
from service.ledger.events import Meta, Unreadable
from service.ledger.ledger import Ledger
from service.ledger.merkle import leaf_of
from service.ledger.sql import queries

READ_SECONDS_MAX = 600.0
"""Where activity is far behind, the rest of the log is read instead."""

_SQL = queries("projections.activity")


class TimelineEntry(NamedTuple):
    """An event of a timeline.

    `position` is None before it is numbered. `data` are the fields in the clear, as they were
    recorded; `personal` names the sealed ones, each `sealed`, `erased` or
    `key missing`: gone, and no erasure says so. `meta` and `data` are
    None where the stored event is damaged. `leaf` is the hash that the log has to have of it.
    """

    ledger: str
    position: int | None
    topic: str
    meta: Meta | None
    data: Mapping[str, Any] | None
    personal: Mapping[str, str]
    leaf: bytes | None = None


class ActivityReader:
    """Timelines of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """Read through the ledger's own pool."""
        self._ledger = ledger

    async def timeline(
        self, subject: str, entries_max: int, before: int | None = None
    ) -> list[TimelineEntry]:
        """Return the newest events about an id of ours, or of a request; oldest first.

        With `before`, only those whose position is less than it.
        """
        schema = self._ledger.name
        needle = msgspec.json.encode(subject)  # as a whole value stands in a stored event
        async with self._ledger.database.background.transaction(READ_SECONDS_MAX) as connection:
            # Before the rest: what activity takes in meanwhile is read from the log, not missed.
            reached = await connection.fetchval(_SQL.reached.on(schema))
            rows = await connection.fetch(
                _SQL.timeline.on(schema), subject, needle, entries_max, reached, before
            )
            found = [(row, _stored(row)) for row in reversed(rows)]
            found = [(row, stored) for row, stored in found if self._is_about(subject, row, stored)]
            sealed = {state.sealed.key for _, state in found if state and state.sealed}
            left = await connection.fetch(_SQL.keys_left.on(schema), list(sealed)) if sealed else []
        keys = {row["key_id"]: _personal(row) for row in left}
        return [self._entry(row, stored, keys) for row, stored in found]

    def _is_about(self, subject: str, row: Row, stored: State | None) -> bool:
        """Return whether an event names the id in a field that says so; a damaged one may."""
        if row["is_known"] or stored is None:
            return True
        stream, version, topic = row[2:5]
        try:
            event, meta = self._ledger.codec.decode_stored(stream, version, topic, stored, None)
        except Exception:  # noqa: BLE001 - what cannot be read is shown, not left out
            return True
        return subject == meta.request_id or subject in subjects(event)

    def _entry(self, row: Row, stored: State | None, keys: Mapping[UUID, str]) -> TimelineEntry:
        topic, sealed = row["topic"], stored.sealed if stored else None
        personal = self._ledger.codec.personal(topic)
        return TimelineEntry(
            self._ledger.name,
            row["position"],
            topic,
            meta=stored.meta if stored else None,
            data=msgspec.json.decode(stored.data) if stored else None,
            personal=dict.fromkeys(personal, keys[sealed.key]) if sealed else {},
            leaf=leaf_of(*tuple(row)[:6]),
        )


def _personal(row: Row) -> str:
    if row["is_left"]:
        return "sealed"
    return "erased" if row["is_erased"] else "key missing"


def _stored(row: Row) -> State | None:
    try:
        return stored_form(row["state"])
    except Unreadable:
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
