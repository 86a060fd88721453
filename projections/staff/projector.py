"""From facts about the team to the rows that the back office admits by."""

from collections.abc import Iterable
from typing import ClassVar

from service.facts.people import StaffAdded, StaffRemoved
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("projections.staff")


class StaffProjector:
    """Table `staff`."""

    name = "staff"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("staff",)
    topics: ClassVar[tuple[type[Event], ...]] = (StaffAdded, StaffRemoved)
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case StaffAdded() as event:
                hashed = None if event.email_hash is None else bytes.fromhex(event.email_hash)
                at = recorded.meta.at
                yield Write(_SQL.insert, (event.staff_id, recorded.stream_id, hashed, at))
            case StaffRemoved(staff_id=staff_id):
                yield Write(_SQL.remove, (staff_id, recorded.meta.at))
            case _:
                pass
