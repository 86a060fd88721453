"""What surrounds the log: its head, the queue of unnumbered events, and events in neither."""

from service.evidence.verdict import Fault
from service.evidence.verify.rows import Macs, Rows
from service.ledger.binding import BOUND_TOPIC, binding_of, boundary_stream
from service.ledger.database import Connection, Row
from service.ledger.event_macs import EventKeys
from service.ledger.sql import queries

_SQL = queries("service.evidence.verify")
_BOUND = queries("service.ledger").bound
_PREFETCH = 2000


async def tail_fault(
    connection: Connection, schema: str, rows: Rows, keys: EventKeys | None, *, has_lineage: bool
) -> Fault | None:
    """Return the first fault around a log whose rows are all sound.

    Without `keys`, nobody knows who wrote what waits for its number.
    """
    heads = await connection.fetch(_SQL.head.on(schema))
    fault = _head_fault(heads, rows, has_lineage=has_lineage)
    if fault is not None:
        return fault
    macs = None if keys is None else await _macs_at_end(connection, schema, keys)
    waiting = await _waiting(connection, schema, rows, macs)
    if isinstance(waiting, Fault):
        return waiting
    # Each row of the log has an event of its own, and so has each that waits: others are too many.
    if await connection.fetchval(_SQL.events_count.on(schema)) != rows.size + waiting:
        return await _stray_fault(connection, schema, rows) or rows.misplaced
    return rows.misplaced


def _head_fault(heads: list[Row], rows: Rows, *, has_lineage: bool) -> Fault | None:
    last = rows.size or None
    if len(heads) != 1:
        rows_found = "more than one row" if heads else "no row"
        return Fault(last, f"The head of the log has {rows_found}, so nothing can be numbered.")
    head_id, size, tree, unplaced = heads[0]
    if size != rows.size:
        first = min(size, rows.size) + 1 if isinstance(size, int) and size >= 0 else last
        return Fault(first, f"The log has {rows.size} events, and its head says {size}.")
    if unplaced or head_id != 1:
        said = "The log has rows without a position." if unplaced else "The head has another id."
        return Fault(last, said)
    if tree is None and not has_lineage and rows.size:
        # A log from before there were trees: its next batch makes one. Checkpoints need it.
        return None
    if tree != rows.tree.to_bytes():
        return Fault(last, "The tree in the head of the log is not that of its events.")
    return None


async def _macs_at_end(connection: Connection, schema: str, keys: EventKeys) -> Macs:
    """Return what the MACs of events behind the log are checked with, as its sequencer does."""
    said = await connection.fetch(_BOUND.on(schema), boundary_stream(schema), BOUND_TOPIC)
    return Macs(schema, keys, binding_of(schema, keys, said).oldest)


async def _waiting(
    connection: Connection, schema: str, rows: Rows, macs: Macs | None
) -> Fault | int:
    """Check the queue: its events exist, have no number, continue their streams, and are ours.

    The sequencer sets aside what this service did not write, and so such an event only waits where
    somebody keeps the sequencer from it. Return how many there are, or what is wrong.
    """
    due, before, count = rows.size + 1, None, 0
    async for append_id, event, stream, version, position, topic, digest, mac in connection.cursor(
        _SQL.waiting.on(schema), prefetch=_PREFETCH
    ):
        what = f"The event with append_id {append_id}, which waits for its number,"
        if event is None:
            return Fault(due, f"{what} is gone.")
        if append_id == before:
            return Fault(due, f"{what} waits more than once, and so nothing can be numbered.")
        before = append_id
        if position is not None:
            return Fault(position, f"{what} has one already: {position}.")
        try:
            wrong = macs and macs.misfit(stream, topic, digest, mac)
            wrong = wrong or rows.streams.take(stream, version, append_id)
        except (TypeError, AttributeError):
            wrong = "a column of it is not what it was made as"
        if wrong is not None:
            return Fault(due, f"{what} does not fit: {wrong}.")
        count += 1
    return count


async def _stray_fault(connection: Connection, schema: str, rows: Rows) -> Fault | None:
    stray = await connection.fetchrow(_SQL.strays.on(schema))
    if stray is None:
        return None
    append_id, position = stray
    return Fault(
        position or rows.size + 1,
        f"The event with append_id {append_id} has no number and does not wait for one: "
        "it was put in, or its number was taken away.",
    )
