"""What `POST /documents/upload-url` accepts and returns (contract 2.4)."""

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from service.documents.paths import BYTES_MAX, EXTENSIONS
from service.http.scalars import RequiredText, Timestamp, described

if TYPE_CHECKING:
    MimeType = str
else:
    MimeType = Literal[tuple(EXTENSIONS)]

_PATH = "entities/ent_example/claims/clk_example/documents/doc_example.pdf"


class UploadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is going to be uploaded. No bytes are sent here."""

    entity_id: Annotated[
        RequiredText, described("Connected entity.", "ent_01jexample00000000000000000")
    ]
    partner_claim_id: Annotated[
        RequiredText, described("The same as on POST /claims afterwards.", "case-1001")
    ]
    filename: Annotated[
        RequiredText,
        described(
            "Shown to people only. Path separators and control characters are "
            "replaced when it is linked to a claim.",
            "invoice.pdf",
        ),
    ]
    mime_type: Annotated[
        MimeType,
        described(
            f"One of {', '.join(f'`{one}`' for one in EXTENSIONS)}.",
            "application/pdf",
            extra_json_schema={"type": "string"},
        ),
    ]
    max_bytes: Annotated[
        int, described("Cap of the upload's size.", BYTES_MAX, ge=1, le=BYTES_MAX)
    ] = BYTES_MAX


class UploadResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Where to PUT the bytes, within 15 minutes, with `required_headers` exactly as they are."""

    upload_url: Annotated[
        str,
        described(
            "Signed, PUT only; a credential.",
            f"https://storage.googleapis.com/documents.example.com/{_PATH}?X-Goog-...",
        ),
    ]
    storage_path: Annotated[str, described("For `document_refs` of POST /claims.", _PATH)]
    method: Annotated[
        Literal["PUT"], described("Always PUT.", "PUT", extra_json_schema={"type": "string"})
    ]
    expires_at: Annotated[
        Timestamp, described("When the URL stops working.", "2026-03-01T10:30:30.000Z")
    ]
    required_headers: Annotated[
        dict[str, str],
        described(
            "Echo each of them exactly on the PUT.",
            {"Content-Type": "application/pdf", "x-goog-content-length-range": f"0,{BYTES_MAX}"},
        ),
    ]
