"""Where a replay or a period ends: at a position, which a time may choose."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from service.core.errors import invalid
from service.core.garbage import collector_paused
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.evidence.replay.footing import Ascent, BindingCheckpoints, check_leaf
from service.evidence.replay.log_fault import LogFault, refuse_foreign
from service.evidence.rolled_back import snapshot_of
from service.ledger.codec import happened_at
from service.ledger.database import Connection, Row
from service.ledger.decoding import PAGE_BYTES_MAX, StoredEvent
from service.ledger.ledger import Ledger
from service.ledger.merkle import leaf_of
from service.ledger.sql import queries

BATCH: Final = 5000
"""Positions that are read at once; fewer where events are large (PAGE_BYTES_MAX)."""
SECONDS_MAX: Final = 6 * 3600.0

_SQL = queries("service.evidence.replay")


class Moment(NamedTuple):
    """Where a replay ends: a position (0: before the first event) and when its event happened.

    `at` is None at position 0, and if that event is damaged: a replay that needs the event raises.
    `size` is the number of numbered events.
    """

    position: int
    at: datetime | None
    size: int


async def moment_of(
    ledger: Ledger,
    keys: Sequence[NoteKey] = (),
    *,
    at: datetime | None = None,
    position: int | None = None,
    published: Checkpoint | None = None,
) -> Moment:
    """Return the moment of a time or a position; without either, the end of the log.

    `keys` sign checkpoints, and `published` is the newest one that binds the log: a time is looked
    for in a log that has it. Raises Refusal (`validation_failed`) for a position that the log has
    not reached, and LogFault if its event is not the one that was hashed, or the log does not end
    where its head says.
    """
    async with snapshot_of(ledger.database, SECONDS_MAX) as connection:
        size, end = await connection.fetchrow(_SQL.size.on(ledger.name)) or (0, 0)
        if size != end:  # what is left out of the answer would be missed by nobody
            raise LogFault(min(size, end) + 1, f"the log ends at {end}, and its head says {size}")
        last: int = size if position is None else position
        if last > size:
            raise invalid("position", f"the log has {size} numbered events")
        if at is not None:
            signed = BindingCheckpoints(connection, ledger.name, keys, published)
            await signed.read()
            last = await _last_by(connection, ledger, signed, at, size)
        row = await connection.fetchrow(_SQL.event.on(ledger.name), last)
    if row is None and last:
        raise LogFault(last, "its event is gone")
    if row is None:
        return Moment(last, None, size)
    *columns, logged = row
    check_leaf(last, logged, leaf_of(*columns))
    return Moment(last, happened_at(row["state"]), size)


async def _last_by(
    connection: Connection, ledger: Ledger, signed: BindingCheckpoints, at: datetime, size: int
) -> int:
    """Return the last position whose event has a time up to then; 0 if there is none.

    It is looked for from the end: clocks of several machines need not agree with the order of the
    log. Whoever alters the time of an event could have it passed over, and all that follows would
    be left out of the answer. So each event on the way has to be the one that was hashed and
    signed, or has to have a MAC of this service where no checkpoint covers it yet. Raises LogFault
    for another one, and for one that is damaged.
    """
    goal = await signed.last()
    covered = 0 if goal is None else goal.size
    await connection.fetchrow(_SQL.plan.on(ledger.name))
    last, is_found = size, False
    with collector_paused():
        while last and not is_found:
            rows = await _page_up_to(connection, ledger, last, covered)
            for row in rows:
                is_found = _happened(row, last) <= at
                if is_found:
                    break
                last -= 1
    if goal is not None and last < goal.size:
        ascent = Ascent(goal, await signed.before(last + 1))
        await ascent.rest(connection, ledger.name, {})
    return last


async def _page_up_to(
    connection: Connection, ledger: Ledger, last: int, covered: int
) -> Sequence[Row]:
    """Return the events up to a position, the last one first; raises LogFault."""
    limits = (max(0, last - BATCH), last, PAGE_BYTES_MAX, covered)
    rows = await connection.fetch(_SQL.page_back.on(ledger.name), *limits)
    if not rows:
        raise LogFault(last, "the log has no such event")
    for due, row in zip(range(last, 0, -1), rows, strict=False):
        position, append_id, stream, version, topic, state, _, logged = row
        if position != due:
            fault = "the log has no such event" if position < due else "the log has it twice"
            raise LogFault(max(position, due), fault)
        if append_id is None:
            raise LogFault(position, "its event is gone")
        check_leaf(position, logged, leaf_of(position, append_id, stream, version, topic, state))
    await refuse_foreign(
        ledger, [StoredEvent(*row[:7]) for row in rows if row["position"] > covered]
    )
    return rows


def _happened(row: Row, position: int) -> datetime:
    happened = happened_at(row["state"])
    if happened is None:
        raise LogFault(position, "its event is damaged")
    return happened
