import pytest

from service.documents.contents import HEAD_BYTES, mismatch
from service.documents.paths import EXTENSIONS
from tests.tables import every_row

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def zipped(name: bytes) -> bytes:
    """Return the first bytes of a zip whose first member has a name."""
    return b"PK\x03\x04" + bytes(22) + len(name).to_bytes(2, "little") + bytes(2) + name


def media(*brands: bytes) -> bytes:
    """Return the first bytes of an ISO media file with a major brand and compatible ones."""
    major, *compatible = brands
    box = b"ftyp" + major + bytes(4) + b"".join(compatible)
    return (len(box) + 4).to_bytes(4, "big") + box + b"\0\0\0\x08free"


GENUINE = [
    ("application/pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"),
    ("application/pdf", b"\xef\xbb\xbf\r\n%PDF-1.4"),
    ("image/jpeg", b"\xff\xd8\xff\xe1\x00\x10Exif"),
    ("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ("image/heic", media(b"heic", b"mif1", b"heic")),
    ("image/heic", media(b"mif1", b"heix")),
    ("image/heif", media(b"mif1", b"miaf")),
    ("image/heif", media(b"heic", b"mif1")),
    ("image/webp", b"RIFF\x24\0\0\0WEBPVP8 "),
    ("image/tiff", b"II*\0\x08\0\0\0"),
    ("image/tiff", b"MM\0*\0\0\0\x08"),
    ("image/gif", b"GIF89a\1\0\1\0"),
    ("application/msword", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(8)),
    (DOCX, zipped(b"[Content_Types].xml")),
    (DOCX, zipped(b"word/document.xml")),
]
DISGUISED = [
    ("application/pdf", b"<!DOCTYPE html><script>alert(1)</script>%PDF-", "text/html"),
    ("application/pdf", b"MZ\x90\0", "application/vnd.microsoft.portable-executable"),
    ("application/pdf", b"\x7fELF\2", "application/x-elf"),
    ("application/pdf", b"#!/bin/sh\n", "text/x-script"),
    ("application/pdf", b"\xff\xd8\xff\xe0", "image/jpeg"),
    ("image/png", b"<?xml version='1.0'?><svg onload='x'>", "image/svg+xml"),
    ("image/jpeg", b"%PDF-1.7", "application/pdf"),
    ("image/heic", media(b"isom", b"mp42"), "unknown"),
    ("image/heic", media(b"mif1", b"avif"), "image/heif"),
    ("image/heic", b"\0\0\0\x08ftyp", "unknown"),
    ("image/heic", b"\xff\xff\xff\xffftypmp42", "unknown"),
    ("image/webp", b"RIFF\x24\0\0\0WAVEfmt ", "unknown"),
    (DOCX, zipped(b"evil.exe"), "application/zip"),
    (DOCX, b"PK\x03\x04", "application/zip"),
    ("application/msword", zipped(b"word/document.xml"), DOCX),
    ("application/pdf", b"", "empty"),
    ("application/pdf", b" " * HEAD_BYTES, "unknown"),
    ("application/pdf", b"x", "unknown"),
    ("no/such-type", b"%PDF-1.7", "application/pdf"),
]


def test_genuine_documents_are_what_they_are_declared_as():
    """Each type of the contract, in the forms that its programs write."""
    with every_row() as row:
        for declared, head in GENUINE:
            with row(declared, head):
                assert mismatch(head, declared) is None
    assert {declared for declared, _ in GENUINE} == set(EXTENSIONS)


def test_disguised_documents_are_named_by_what_they_show():
    """So that people see what came instead."""
    with every_row() as row:
        for declared, head, found in DISGUISED:
            with row(declared, head[:20]):
                assert mismatch(head, declared) == found


@pytest.mark.parametrize("mark", [b" ", b"\0", b"<", b"P", b"<svg", b"ftyp"])
def test_any_bytes_can_be_looked_at(mark):
    """Whatever they are, there is an answer for every type."""
    for size in (0, 1, 7, 8, 12, 16, 30, HEAD_BYTES):
        head = (mark * HEAD_BYTES)[:size]
        for declared in EXTENSIONS:
            assert mismatch(head, declared) != ""
