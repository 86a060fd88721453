"""Judging events that follow later ones, of somebody whose time has ended, once more.

Whoever has a ledger's login can number a genuine event later than others that were appended after
it, or have it set aside, and write it again, as it was; so does whoever takes it back. All of that
would accuse whoever did it. So such an event is judged by the events that were appended before it,
by their append_ids, the first time that it was. Few events come here, if any.
"""

from service.evidence.verify.actor_faults import ActorFaults
from service.evidence.verify.actors import ALL_PROVEN, BEFORE_MAX, is_late
from service.ledger.database import Connection
from service.ledger.sql import queries

_SQL = queries("service.evidence.verify")


async def settled(
    connection: Connection, schema: str, faults: ActorFaults, proven: int = ALL_PROVEN
) -> ActorFaults:
    """Return what is left of the faults once those are looked at that may only be late.

    Only events up to the position `proven` count: nobody knows who wrote the others.
    """
    late = {one.append_id: one for one in faults.late}
    if not late:
        return faults
    found = faults._replace(late=())
    asked = (sorted(late), list({one.stream for one in faults.late}), BEFORE_MAX, proven)
    for row in await connection.fetch(_SQL.late_before.on(schema), *asked):
        one = late[row["append_id"]]
        times = [at for at in row["times"] if at is not None]
        if is_late(times, one.at, one.until):
            found = found.joined(ActorFaults(one.fault, 1))
    return found
