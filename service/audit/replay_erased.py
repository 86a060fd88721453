"""Who was erased by when: rows that only a replay has, for the log alone says so."""

from collections.abc import Iterable
from typing import Final

from service.ledger.events import Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql
from service.privacy.events import PersonalDataErased

TABLE: Final = Sql("service.audit", "replay_erasures_table")
TOPIC: Final = PersonalDataErased.__name__

_ERASURE = Sql("service.audit", "replay_erasure")


class ErasedProjector:
    """Turns erasures into rows of the scratch table `erasures`, which TABLE makes."""

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Answer a row for an erasure."""
        event = recorded.event
        if isinstance(event, PersonalDataErased):
            row = (event.subject, recorded.position, recorded.meta.at, event.reason)
            yield Write(_ERASURE, row)
