"""Storage paths of documents: only paths that we issued (contract 2.4, 4.4). Pure."""

import re
import unicodedata
from collections.abc import Container, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from service.core.errors import ERRORS, Refusal
from service.core.ids import drawn_at

ALL: Final = "entities/"
"""The prefix of every document's path."""

EXTENSIONS: Final = {
    "application/pdf": "pdf",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/heic": "heic",
    "image/heif": "heif",
    "image/webp": "webp",
    "image/tiff": "tiff",
    "image/gif": "gif",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
"""The ten MIME types of contract 2.4, and the extension that a path gets for each."""

BYTES_MAX: Final = 52_428_800
"""50 MB (contract section 8)."""

UPLOADS_OF_CLAIM_MAX: Final = 1_000
"""Ten times what a claim can refer to; a bucket lists as many in one page. They are counted until
they are swept."""

_NAME: Final = re.compile(
    r"(doc_[0-9a-hjkmnp-tv-z]{26})\.(?:" + "|".join(EXTENSIONS.values()) + ")", re.ASCII
)
_PATH: Final = re.compile(rf"entities/([^/]+)/claims/[^/]+/documents/{_NAME.pattern}", re.ASCII)
"""A path as a whole: whose it is, and the document's id."""
_SEGMENT: Final = re.compile(r"(?!\.\.?$)[^/\x00-\x1f\x7f-\x9f]+")
_SEPARATORS: Final = frozenset('/\\:*?"<>|')


class Reference(NamedTuple):
    """A `document_refs` entry whose path we could have issued for this claim."""

    document_id: str
    storage_path: str
    mime_type: str
    filename: str


def entity_prefix(entity_id: str) -> str:
    """Return the prefix of all paths of an entity's documents."""
    return f"{ALL}{entity_id}/"


def prefix(entity_id: str, claim_key: str) -> str:
    """Return the prefix of all paths of one claim's documents."""
    return f"{entity_prefix(entity_id)}claims/{claim_key}/documents/"


def common_prefix(references: Sequence[Reference]) -> str:
    """Return what the paths of some references begin with: all of it, where there is one."""
    all_of_them = [one.storage_path for one in references]
    first, last = min(all_of_them), max(all_of_them)
    pairs = zip(first, last, strict=False)
    return first[: next((nr for nr, (one, other) in enumerate(pairs) if one != other), len(first))]


def storage_path(entity_id: str, claim_key: str, document_id: str, mime_type: str) -> str:
    """Return the path of a new document; its name is generated, its extension the MIME type's."""
    return f"{prefix(entity_id, claim_key)}{document_id}.{EXTENSIONS[mime_type]}"


def document_id_of(path: str, entity_id: str, claim_key: str) -> str | None:
    """Return the document's id, or None for a path that cannot belong to this claim.

    The whole path is matched byte for byte: no `..`, no escapes, no similar prefix.
    """
    under = prefix(entity_id, claim_key)
    match = _NAME.fullmatch(path.removeprefix(under)) if path.startswith(under) else None
    return match and match[1]


def minted_at(path: str) -> datetime | None:
    """Return when a path was minted, by the id in it; None for one that this service never does."""
    match = _PATH.fullmatch(path)
    return match and drawn_at(match[2])


def entity_of(path: str) -> str | None:
    """Return whose a path is that we could have issued; None for another."""
    match = _PATH.fullmatch(path)
    return match and match[1]


def is_under(path: str, entity_id: str, claim_key: str) -> bool:
    """Return whether a path is a name under a claim's prefix, whether we issued it or not."""
    under = prefix(entity_id, claim_key)
    return path.startswith(under) and bool(_SEGMENT.fullmatch(path, len(under)))


def references(
    asked: Sequence[tuple[str, str, str]], entity_id: str, claim_key: str, minted: Container[str]
) -> list[Reference]:
    """Return (path, MIME type, filename) triples, whose paths differ, as references.

    Refuses with `document_path_invalid` those that are not under the claim's prefix, and otherwise
    with `document_not_uploaded` those that are not among its `minted` paths: nothing was uploaded
    there, or nothing is kept for this claim any more.
    """
    found: list[Reference] = []
    others: list[int] = []
    missing: list[int] = []
    for number, (path, mime_type, filename) in enumerate(asked):
        document_id = document_id_of(path, entity_id, claim_key)
        if document_id is not None and path in minted:
            found.append(Reference(document_id, path, mime_type, shown(filename)))
        else:
            (missing if is_under(path, entity_id, claim_key) else others).append(number)
    for code, numbers in (("document_path_invalid", others), ("document_not_uploaded", missing)):
        if numbers:
            raise refusal(code, numbers)
    return found


def refusal(code: str, numbers: Sequence[int]) -> Refusal:
    """Return the refusal of some entries of `document_refs`, which its message names."""
    where = ", ".join(f"document_refs[{number}]" for number in numbers)
    return Refusal(code, f"{where}: {ERRORS[code].message}")


def shown(filename: str) -> str:
    """Return a filename that is safe to show; it is never used as part of a path.

    Separators and control characters become `_`; an empty name becomes `document`. The wire type
    limits its length.
    """
    safe = "".join(
        "_"
        if mark in _SEPARATORS or unicodedata.category(mark) in {"Cc", "Cf", "Zl", "Zp"}
        else mark
        for mark in filename
    ).strip()
    return safe if safe.strip(".") else "document"
