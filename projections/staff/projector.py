"""From facts about the team to the rows that the back office admits by."""

from collections.abc import Iterable

from service.facts.people import StaffAdded, StaffRemoved
from service.ledger.events import Recorded
from service.ledger.projector import Insert, Table, Update, Write
from service.ledger.sql import queries

_SQL = queries("projections.staff")

STAFF = Table(
    "staff",
    "staff_id text, stream_id uuid, address_hash bytea, added_at timestamptz",
)


class StaffProjector:
    """Table `staff`."""

    name = "staff"
    version = 1
    tables = (STAFF,)
    topics = (StaffAdded, StaffRemoved)
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case StaffAdded() as event:
                hashed = None if event.email_hash is None else bytes.fromhex(event.email_hash)
                at = recorded.meta.at
                yield Insert(STAFF, (event.staff_id, recorded.stream_id, hashed, at))
            case StaffRemoved(staff_id=staff_id):
                yield Update(STAFF, _SQL.remove, (staff_id, recorded.meta.at))
            case _:
                pass
