"""Which uploads a claim may reference. Pure: references and stored objects in, uploads out."""

from collections.abc import Mapping, Sequence

from service.claims.decisions import Upload
from service.core.errors import Refusal
from service.documents.paths import Reference, refusal
from service.facts.claims import Claim, Document, DocumentFlagged
from service.storage.port import StoredObject


def uploads(references: Sequence[Reference], stored: Mapping[str, StoredObject]) -> list[Upload]:
    """Return each reference as an upload, with its stored object.

    Refuses with `document_not_uploaded` for a missing object, and with `validation_failed` where
    the MIME type is not the one that was uploaded (readings).
    """
    missing = [nr for nr, one in enumerate(references) if one.storage_path not in stored]
    if missing:
        raise refusal("document_not_uploaded", missing)
    faults = [
        f"[{number}].mime_type: the file was uploaded as {stored[one.storage_path].content_type}"
        for number, one in enumerate(references)
        if stored[one.storage_path].content_type != one.mime_type
    ]
    if faults:
        raise Refusal("validation_failed", field_errors={"document_refs": faults})
    return [
        Upload(_document(reference, stored[reference.storage_path]), reference.filename)
        for reference in references
    ]


def flag(claim: Claim, document_id: str, reason: str, detail: str) -> list[DocumentFlagged]:
    """Record what a check found in a document of the claim's.

    The same reason twice changes nothing, and neither does a document that the claim lacks.
    """
    attached = claim.attached.documents if claim.attached is not None else ()
    if document_id not in {one.document_id for one in attached}:
        return []
    if any((one.document_id, one.reason) == (document_id, reason) for one in claim.flags):
        return []
    return [DocumentFlagged(claim.claim_id, document_id, reason, detail)]


def _document(reference: Reference, found: StoredObject) -> Document:
    return Document(
        document_id=reference.document_id,
        storage_path=reference.storage_path,
        mime_type=reference.mime_type,
        size=found.size,
        generation=found.generation,
        crc32c=found.crc32c,
    )
