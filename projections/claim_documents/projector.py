"""From facts about claims to the rows that audits and sweeps of documents read."""

from collections.abc import Iterable
from typing import ClassVar

from service.facts.claims import DocumentsAttached
from service.facts.privacy import PersonalDataErased
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("projections.claim_documents")


class ClaimDocumentsProjector:
    """Table `claim_documents`. It holds nothing personal: filenames stay sealed in the log."""

    name = "claim_documents"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("claim_documents",)
    topics: ClassVar[tuple[type[Event], ...]] = (DocumentsAttached, PersonalDataErased)
    reads_personal = False

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case DocumentsAttached() as event:
                for one in event.documents:
                    yield Write(
                        _SQL.insert,
                        (
                            one.document_id,
                            event.claim_id,
                            one.storage_path,
                            one.mime_type,
                            one.size,
                            one.generation,
                            one.crc32c,
                        ),
                    )
            case PersonalDataErased(subject=subject):
                yield Write(_SQL.erase, (subject,))
            case _:
                pass
