"""`POST /documents/upload-url` (contract 4.3)."""

from collections.abc import Mapping

from litestar import Response, Router, post

from service.core.clock import timestamp
from service.documents.commands import DocumentCommands
from service.documents.wire import UploadRequest, UploadResponse
from service.facts.caller import Mode
from service.http.answers import json_answer
from service.http.bodies import AnyRequest, caller_of, read_body
from service.http.decoding import decode


def documents_router(commands: Mapping[Mode, DocumentCommands]) -> Router:
    """Return the router of `/documents`."""

    @post("/documents/upload-url", opt={"endpoint": "mint_upload_url"})
    async def mint_upload_url(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        body = await read_body(request)
        asked = decode(body, request.headers.get("content-type"), UploadRequest)
        path, upload = await commands[caller.mode].mint(caller, asked)
        answer = UploadResponse(
            upload_url=upload.url,
            storage_path=path,
            method="PUT",
            expires_at=timestamp(upload.expires_at),
            required_headers=dict(upload.required_headers),
        )
        return json_answer(answer, 201, {"Cache-Control": "no-store"})

    return Router("/", route_handlers=[mint_upload_url])
