"""Who was erased by when: rows that only a replay has, for the log alone says so."""

from collections.abc import Iterable
from typing import Final

from service.facts.privacy import PersonalDataErased
from service.ledger.events import Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("service.evidence.replay")
TABLE = _SQL.replay_erasures_table
TOPIC: Final = PersonalDataErased.__name__


class ErasedProjector:
    """Turns erasures into rows of the scratch table `erasures`."""

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return a row for an erasure."""
        event = recorded.event
        if isinstance(event, PersonalDataErased):
            row = (event.subject, recorded.position, recorded.meta.at, event.reason)
            yield Write(_SQL.replay_erasure, row)
