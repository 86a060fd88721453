"""Judging events that follow later ones, of somebody whose time has ended, once more.

Whoever has a ledger's login can number a genuine event later than others that were appended after
it, and an event that was taken back is appended again, as it was. Both would accuse whoever did it.
So such an event is judged by the events that were appended before it, by their append_ids. It is
accepted, too, where the log records that it was taken back. Few events come here, if any.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from service.evidence.verify.actor_faults import ActorFaults, Late
from service.evidence.verify.actors import BEFORE_MAX, ENTITIES_LATE_MAX, is_late
from service.evidence.verify.known_actors import UNREADABLE
from service.facts.lineages import EventTakenBack
from service.ledger.database import Connection, Row
from service.ledger.sql import queries

_STATE_BYTES_MAX: Final = 1 << 20
"""Of the record that an event was taken back; its reason is what takes most of it."""
_SQL = queries("service.evidence.verify")

Ours = Callable[[Sequence[Row]], Sequence[Row]]


class _TakenBack(msgspec.Struct):
    stream: str
    stream_version: int


class _Record(msgspec.Struct):
    data: _TakenBack


_decoder = msgspec.json.Decoder(_Record)


def numbered(rows: Sequence[Row]) -> Sequence[Row]:
    """Return those of some rows that have a number: all that counts in a log that holds."""
    return [row for row in rows if row["position"] is not None]


async def settled(
    connection: Connection, schema: str, faults: ActorFaults, ours: Ours
) -> ActorFaults:
    """Return what is left of the faults once those are looked at that may only be late.

    `ours` returns those of some rows that this service wrote.
    """
    late = {one.append_id: one for one in faults.late}
    if not late:
        return faults
    found = faults._replace(late=())
    asked = (sorted(late), BEFORE_MAX)
    for row in await connection.fetch(_SQL.late_before.on(schema), *asked):
        one = late[row["append_id"]]
        times = [at for at in row["times"] if at is not None]
        if is_late(times, one.at, one.until) and not await _is_taken_back(
            connection, schema, one, ours
        ):
            found = found.joined(ActorFaults(one.fault, 1))
    return found


async def _is_taken_back(connection: Connection, schema: str, one: Late, ours: Ours) -> bool:
    """Return whether the log records soon behind an event that it was taken back."""
    told = f'"stream":"{one.stream}"'.encode()
    asked = (one.append_id, ENTITIES_LATE_MAX, EventTakenBack.__name__, _STATE_BYTES_MAX, told)
    rows = await connection.fetch(_SQL.late_taken_back.on(schema), *asked)
    return any(_names(row["state"], one) for row in ours(rows))


def _names(state: bytes, one: Late) -> bool:
    try:
        said = _decoder.decode(state).data
    except UNREADABLE:
        return False
    return (said.stream, said.stream_version) == (str(one.stream), one.version)
