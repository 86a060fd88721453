"""From facts about claims to the rows that audits and sweeps of documents read."""

from collections.abc import Iterable

from service.facts.claims import DocumentFlagged, DocumentsAttached
from service.facts.privacy import PersonalDataErased
from service.ledger.events import Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.sql import queries

_SQL = queries("projections.claim_documents")

CLAIM_DOCUMENTS = Table(
    "claim_documents",
    """
    document_id text, claim_id text, storage_path text, mime_type text, size bigint,
    generation bigint, crc32c text
    """,
)

DOCUMENT_FLAGS = Table(
    "document_flags",
    "document_id text, claim_id text, reason text, flagged_at timestamptz",
)


class ClaimDocumentsProjector(Projector):
    """Tables `claim_documents` and `document_flags`, which hold nothing personal.

    Filenames stay sealed in the log.
    """

    name = "claim_documents"
    version = 1
    tables = (CLAIM_DOCUMENTS, DOCUMENT_FLAGS)
    topics = (DocumentsAttached, DocumentFlagged, PersonalDataErased)

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case DocumentsAttached() as event:
                for document in event.documents:
                    yield CLAIM_DOCUMENTS.new(document, claim_id=event.claim_id)
            case DocumentFlagged() as event:
                yield DOCUMENT_FLAGS.new(event, flagged_at=recorded.meta.at)
            case PersonalDataErased(subject=subject):
                yield Update(CLAIM_DOCUMENTS, _SQL.erase, (subject,))
            case _:
                pass
