"""From facts about the team to the rows that the back office admits by."""

from collections.abc import Iterable

from service.facts.people import StaffAdded, StaffRemoved
from service.facts.privacy import PersonalDataErased
from service.ledger.events import Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.service_keys import lookup_bytes
from service.ledger.sql import queries

_SQL = queries("projections.staff")

STAFF = Table(
    "staff",
    "staff_id text, stream_id uuid, address_hash bytea, added_at timestamptz",
)


class StaffProjector(Projector):
    """Table `staff`."""

    name = "staff"
    version = 1
    tables = (STAFF,)
    topics = (StaffAdded, StaffRemoved, PersonalDataErased)
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case StaffAdded() as event:
                yield STAFF.new(
                    event,
                    stream_id=recorded.stream_id,
                    address_hash=lookup_bytes(event.email_hash),
                    added_at=recorded.meta.at,
                )
            case StaffRemoved(staff_id=staff_id):
                yield Update(STAFF, _SQL.remove, (staff_id, recorded.meta.at))
            case PersonalDataErased():
                yield Update(STAFF, _SQL.erase, (recorded.stream_id, recorded.meta.at))
            case _:
                pass
