"""`POST /documents/upload-url` (contract 4.3)."""

from typing import Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from service.core.clock import timestamp
from service.documents.wire import UploadRequest, UploadResponse
from service.http.bodies import AnyRequest, caller_of, read_as
from service.http.responses import json_response
from service.partner_api.endpoints import Endpoint, Modes, ResponseLink, Success

_NAMED_BY: Final = ResponseLink(
    "create_claim",
    "Once the file is uploaded, a claim names it; `defendant` and `invoices` are yours to add.",
    body={
        "entity_id": "$request.body#/entity_id",
        "partner_claim_id": "$request.body#/partner_claim_id",
        "document_refs": [
            {
                "storage_path": "$response.body#/storage_path",
                "mime_type": "$request.body#/mime_type",
                "filename": "$request.body#/filename",
            }
        ],
    },
)

MINT_UPLOAD_URL: Final = Endpoint(
    id="mint_upload_url",
    method="post",
    path="/documents/upload-url",
    tag="Documents",
    summary="Get a URL to upload a document to",
    description=(
        "Answers a URL that takes one `PUT` of a file's bytes, straight to object storage, "
        "within 15 minutes. Send exactly the headers of `required_headers`, and no API key: "
        "the URL is a credential. Then name `storage_path` in the `document_refs` of "
        "`POST /claims`, with the same `entity_id` and `partner_claim_id`.\n\n"
        "Storage answers in XML; read its `<Code>` alone. Opened in a browser the URL answers "
        "`MalformedSecurityHeader`, as it should. A URL stores a file once: when the answer to "
        "a `PUT` was lost and the repeat is refused, mint again and upload anew; uploads that "
        "no claim names are removed in time.\n\n"
        "Not idempotent: each call mints a fresh path. In test mode documents lie apart from "
        "those of live mode."
    ),
    body=UploadRequest,
    successes=(Success(201, UploadResponse, "A fresh URL.", links=(_NAMED_BY,)),),
    own_errors=("entity_not_owned", "partner_disconnected", "entity_not_found"),
)


def document_handlers(modes: Modes) -> list[HTTPRouteHandler]:
    """Return the handlers of `/documents`."""

    @MINT_UPLOAD_URL.handler
    async def mint_upload_url(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        asked = await read_as(request, UploadRequest)
        path, upload = await modes[caller.mode].documents.mint(caller, asked)
        answer = UploadResponse(
            upload_url=upload.url,
            storage_path=path,
            method="PUT",
            expires_at=timestamp(upload.expires_at),
            required_headers=dict(upload.required_headers),
        )
        return json_response(answer, 201)

    return [mint_upload_url]
