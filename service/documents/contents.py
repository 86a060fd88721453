"""What a document's first bytes show, compared with the type that was declared. Pure.

Nothing is parsed beyond a signature: it tells honest mistakes and plain disguises, and no more. A
Word file is known as the container that it is (OLE, or a zip whose first member is of Office Open
XML), which a spreadsheet shares.
"""

from collections.abc import Callable, Mapping
from typing import Final

HEAD_BYTES: Final = 4096
"""How many of a document's first bytes are looked at."""
EMPTY: Final = "empty"
UNKNOWN: Final = "unknown"

_HEIC: Final = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_HEIF: Final = _HEIC | {b"mif1", b"mif2", b"msf1", b"miaf"}
_BLANK: Final = b"\xef\xbb\xbf\0\t\n\x0b\x0c\r "
"""What may precede the first mark of a text: white space, and a mark of the byte order."""


def _begins(*signatures: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(signatures)


def _is_webp(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def _brands(head: bytes) -> set[bytes]:
    """Return the brands of an ISO media file: the major one, and the compatible ones."""
    if head[4:8] != b"ftyp":
        return set()
    end = min(int.from_bytes(head[:4], "big"), len(head))
    return {head[8:12], *(head[at : at + 4] for at in range(16, end - 3, 4))}


def _is_docx(head: bytes) -> bool:
    if not head.startswith(b"PK\x03\x04"):
        return False
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    return name == b"[Content_Types].xml" or name.startswith(
        (b"_rels/", b"docProps/", b"word/", b"customXml/")
    )


_DECLARED: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "application/pdf": lambda head: head.lstrip(_BLANK).startswith(b"%PDF-"),
    "image/jpeg": _begins(b"\xff\xd8\xff"),
    "image/png": _begins(b"\x89PNG\r\n\x1a\n"),
    "image/heic": lambda head: not _HEIC.isdisjoint(_brands(head)),
    "image/heif": lambda head: not _HEIF.isdisjoint(_brands(head)),
    "image/webp": _is_webp,
    "image/tiff": _begins(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    "image/gif": _begins(b"GIF87a", b"GIF89a"),
    "application/msword": _begins(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": _is_docx,
}
"""The types that can be declared (contract 2.4), and how each begins."""

_OTHERS: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "application/zip": _begins(b"PK\x03\x04", b"PK\x05\x06"),
    "application/gzip": _begins(b"\x1f\x8b"),
    "application/vnd.rar": _begins(b"Rar!\x1a\x07"),
    "application/x-7z-compressed": _begins(b"7z\xbc\xaf\x27\x1c"),
    "application/vnd.microsoft.portable-executable": _begins(b"MZ"),
    "application/x-elf": _begins(b"\x7fELF"),
    "text/x-script": _begins(b"#!"),
    "text/html": lambda head: (
        head.lstrip(_BLANK)[:14]
        .lower()
        .startswith((b"<!doctype html", b"<html", b"<script", b"<head", b"<body"))
    ),
    "image/svg+xml": lambda head: b"<svg" in head[:1024].lower(),
    "application/xml": lambda head: head.lstrip(_BLANK).startswith(b"<?xml"),
}
"""What is told apart from `unknown`, so that people see at a glance what came instead."""


def mismatch(head: bytes, declared: str) -> str | None:
    """Return what the first bytes show instead of the declared type; None where they agree."""
    if not head:
        return EMPTY
    shows = _DECLARED.get(declared)
    if shows is not None and shows(head):
        return None
    kinds = {**_DECLARED, **_OTHERS}
    return next((kind for kind, begins in kinds.items() if begins(head)), UNKNOWN)
