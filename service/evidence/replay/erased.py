"""Erasures up to a moment: a table that only a replay has, since no read model keeps it."""

from collections.abc import Iterable

from service.facts.privacy import PersonalDataErased
from service.ledger.events import Recorded
from service.ledger.projector import Insert, Table, Write

ERASURES = Table("erasures", "subject text, position bigint, at timestamptz, reason text")


class ErasedProjector:
    """Turns erasures into rows of the scratch table `erasures`."""

    name = "erasures"
    version = 1
    tables = (ERASURES,)
    topics = (PersonalDataErased,)
    reads_personal = False

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return a row for an erasure."""
        event = recorded.event
        if isinstance(event, PersonalDataErased):
            row = (event.subject, recorded.position, recorded.meta.at, event.reason)
            yield Insert(ERASURES, row)
