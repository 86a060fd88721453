"""From facts about claims to the rows that audits and sweeps of documents read."""

from collections.abc import Iterable
from typing import ClassVar

from service.claims.events import DocumentsAttached
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql
from service.privacy.events import PersonalDataErased

_INSERT = Sql("projections.claim_documents", "insert")
_ERASE = Sql("projections.claim_documents", "erase")


class ClaimDocumentsProjector:
    """Table `claim_documents`. It holds nothing personal: filenames stay sealed in the log."""

    name = "claim_documents"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("claim_documents",)
    topics: ClassVar[tuple[type[Event], ...]] = (DocumentsAttached, PersonalDataErased)
    reads_personal = False

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Answer what this event changes."""
        match recorded.event:
            case DocumentsAttached() as event:
                for one in event.documents:
                    yield Write(
                        _INSERT,
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
                yield Write(_ERASE, (subject,))
            case _:
                pass
