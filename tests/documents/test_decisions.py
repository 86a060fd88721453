import msgspec
import pytest

from service.claims.decisions import Upload
from service.core.errors import Refusal
from service.documents import decisions
from service.documents.paths import Reference
from service.facts.claims import (
    ClaimCreated,
    Document,
    DocumentFlagged,
    DocumentsAttached,
    fold,
)
from service.storage.port import StoredObject

PDF = "application/pdf"


def reference(name: str, mime_type: str = PDF) -> Reference:
    """Return a reference to `path/<name>`."""
    return Reference(f"doc_{name}", f"path/{name}", mime_type, f"{name}.pdf")


def stored(*names: str, content_type: str = PDF) -> dict[str, StoredObject]:
    """Return objects as a listing shows them."""
    return {
        f"path/{name}": StoredObject(f"path/{name}", 10 + nr, content_type, 100 + nr, f"crc-{name}")
        for nr, name in enumerate(names)
    }


def test_uploads_come_in_the_order_of_the_references():
    """They have size, generation and checksum; other objects there are ignored."""
    found = decisions.uploads([reference("b"), reference("a")], stored("a", "b", "other"))
    assert found == [
        Upload(Document("doc_b", "path/b", PDF, 11, 101, "crc-b"), "b.pdf"),
        Upload(Document("doc_a", "path/a", PDF, 10, 100, "crc-a"), "a.pdf"),
    ]


def test_no_references_give_no_documents():
    """No reference, no document."""
    assert decisions.uploads([], stored("a")) == []


def test_one_missing_upload_refuses_all():
    """Contract 4.4."""
    with pytest.raises(Refusal) as refused:
        decisions.uploads([reference("a"), reference("b")], stored("a"))
    assert refused.value.code == "document_not_uploaded"
    assert refused.value.message == (
        "document_refs[1]: No upload for this claim is at a referenced path."
    )


def test_missing_uploads_are_reported_before_differing_types():
    """A type can only be compared once all uploads exist."""
    with pytest.raises(Refusal) as refused:
        decisions.uploads([reference("a", "image/png"), reference("b")], stored("a"))
    assert refused.value.code == "document_not_uploaded"


def test_another_mime_type_is_a_fault_of_its_entry():
    """Readings: validation_failed names every such entry."""
    asked = [reference("a", "image/png"), reference("b"), reference("c", "image/gif")]
    with pytest.raises(Refusal) as refused:
        decisions.uploads(asked, stored("a", "b", "c"))
    assert refused.value.code == "validation_failed"
    assert refused.value.field_errors == {
        "document_refs": [
            f"[0].mime_type: the file was uploaded as {PDF}",
            f"[2].mime_type: the file was uploaded as {PDF}",
        ]
    }


def test_only_a_document_of_the_claims_is_flagged_and_once_for_each_reason():
    """Whatever a check was asked to look at."""
    attached = DocumentsAttached("clm_1", [Document("doc_a", "path/a", PDF, 1, 1, "crc")])
    claim = fold([ClaimCreated("clm_1", "ptn_1", "ent_1", "c-1", "fingerprint"), attached])
    (found,) = decisions.flag(claim, "doc_a", "malware", "Eicar")
    assert found == DocumentFlagged("clm_1", "doc_a", "malware", "Eicar")
    flagged = msgspec.structs.replace(claim, flags=(found,))
    assert decisions.flag(flagged, "doc_a", "malware", "Another") == []
    assert decisions.flag(claim, "doc_b", "malware", "Eicar") == []
    unattached = msgspec.structs.replace(claim, attached=None)
    assert decisions.flag(unattached, "doc_a", "malware", "Eicar") == []
