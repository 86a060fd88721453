import pytest

from service.claims.decisions import Upload
from service.core.errors import Refusal
from service.documents import decisions
from service.documents.paths import Reference
from service.facts.claims import Document
from service.storage.port import StoredObject

PDF = "application/pdf"


def reference(name: str, mime_type: str = PDF) -> Reference:
    """Return a reference to `path/<name>`."""
    return Reference(f"doc_{name}", f"path/{name}", mime_type, f"{name}.pdf")


def stored(*names: str, content_type: str = PDF) -> dict[str, StoredObject]:
    """Return objects as a listing has them."""
    return {
        f"path/{name}": StoredObject(f"path/{name}", 10 + nr, content_type, 100 + nr, f"crc-{name}")
        for nr, name in enumerate(names)
    }


def test_uploads_are_what_is_stored_in_the_order_of_the_references():
    """With size, generation and checksum; what else lies there is left alone."""
    found = decisions.uploads([reference("b"), reference("a")], stored("a", "b", "other"))
    assert found == [
        Upload(Document("doc_b", "path/b", PDF, 11, 101, "crc-b"), "b.pdf"),
        Upload(Document("doc_a", "path/a", PDF, 10, 100, "crc-a"), "a.pdf"),
    ]


def test_nothing_asked_is_nothing_found():
    """No reference, no document."""
    assert decisions.uploads([], stored("a")) == []


def test_one_that_is_missing_refuses_all():
    """Contract 4.4."""
    with pytest.raises(Refusal) as refused:
        decisions.uploads([reference("a"), reference("b")], stored("a"))
    assert refused.value.code == "document_not_uploaded"


def test_what_is_missing_is_said_before_what_differs():
    """A type can only be compared once everything is there."""
    with pytest.raises(Refusal) as refused:
        decisions.uploads([reference("a", "image/png"), reference("b")], stored("a"))
    assert refused.value.code == "document_not_uploaded"


def test_another_mime_type_is_a_fault_of_its_entry():
    """Readings: validation_failed, and every such entry is named."""
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
