"""What `POST /documents/upload-url` takes and answers (contract 2.4)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from service.documents.paths import BYTES_MAX, EXTENSIONS
from service.http.scalars import RequiredText, Timestamp

MimeType = Literal[
    "application/pdf",
    "image/jpeg",
    "image/png",
    "image/heic",
    "image/heif",
    "image/webp",
    "image/tiff",
    "image/gif",
    "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
]

_PATH = "entities/ent_example/claims/clk_example/documents/doc_example.pdf"


class UploadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is going to be uploaded. No bytes are sent here."""

    entity_id: Annotated[
        RequiredText,
        Meta(description="Connected entity.", examples=["ent_01jexample00000000000000000"]),
    ]
    partner_claim_id: Annotated[
        RequiredText,
        Meta(description="The same as on POST /claims afterwards.", examples=["case-1001"]),
    ]
    filename: Annotated[
        RequiredText,
        Meta(
            description="Shown to people only. Path separators and control characters are "
            "replaced when it is linked to a claim.",
            examples=["invoice.pdf"],
        ),
    ]
    mime_type: Annotated[
        MimeType,
        Meta(
            description=f"One of {', '.join(f'`{one}`' for one in EXTENSIONS)}.",
            examples=["application/pdf"],
            extra_json_schema={"type": "string"},
        ),
    ]
    max_bytes: Annotated[
        int,
        Meta(ge=1, le=BYTES_MAX, description="Cap of the upload's size.", examples=[BYTES_MAX]),
    ] = BYTES_MAX


class UploadResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Where to PUT the bytes, within 15 minutes, with `required_headers` exactly as they are."""

    upload_url: Annotated[
        str,
        Meta(
            description="Signed, PUT only; a credential.",
            examples=[f"https://storage.googleapis.com/documents.example.com/{_PATH}?X-Goog-..."],
        ),
    ]
    storage_path: Annotated[
        str, Meta(description="For `document_refs` of POST /claims.", examples=[_PATH])
    ]
    method: Annotated[
        Literal["PUT"],
        Meta(description="Always PUT.", examples=["PUT"], extra_json_schema={"type": "string"}),
    ]
    expires_at: Annotated[
        Timestamp,
        Meta(description="When the URL stops working.", examples=["2026-03-01T10:30:30.000Z"]),
    ]
    required_headers: Annotated[
        dict[str, str],
        Meta(
            description="Echo each of them exactly on the PUT.",
            examples=[
                {
                    "Content-Type": "application/pdf",
                    "x-goog-content-length-range": f"0,{BYTES_MAX}",
                }
            ],
        ),
    ]
