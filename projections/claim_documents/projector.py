"""From facts about claims to the rows that audits and sweeps of documents read."""

from collections.abc import Iterable

from service.claims.events import DocumentsAttached
from service.ledger.events import Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql

_INSERT = Sql("projections.claim_documents", "insert")


class ClaimDocumentsProjector:
    """Table `claim_documents`. It holds nothing personal: filenames stay sealed in the log."""

    name = "claim_documents"
    version = 1

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Answer what this event changes."""
        if isinstance(recorded.event, DocumentsAttached):
            for one in recorded.event.documents:
                yield Write(
                    _INSERT,
                    (
                        one.document_id,
                        recorded.event.claim_id,
                        one.storage_path,
                        one.mime_type,
                        one.size,
                        one.generation,
                        one.crc32c,
                    ),
                )
