"""From a file to a reference: mint a URL, PUT the bytes, mint again where it was used up."""

import os
import re
from typing import Final

import anyio
import httpx2

from claim_ledger_client._async.calls import Calls
from claim_ledger_client._connection import USER_AGENT
from claim_ledger_client.errors import (
    ClaimLedgerError,
    UnreadableAnswerError,
    UploadRefusedError,
)
from claim_ledger_client.models import DocumentRef, UploadRequest, UploadResponse
from claim_ledger_client.operations import MINT_UPLOAD_URL, STATUSES
from claim_ledger_client.retries import Patience

File = bytes | os.PathLike[str]

_CODE: Final = re.compile(rb"<Code>([A-Za-z]{1,64})</Code>")
_FORBIDDEN: Final = 403


async def upload(calls: Calls, request: UploadRequest, file: File) -> DocumentRef:
    """Return the reference of an uploaded file."""
    content = file if isinstance(file, bytes) else await anyio.Path(file).read_bytes()
    patience = Patience(calls.retries)
    while True:
        minted = await calls.call(MINT_UPLOAD_URL, UploadResponse, body=request)
        try:
            await _put(calls, minted, content, patience)
        except UploadRefusedError as refused:
            wait = patience.backoff(refused)
            if refused.status != _FORBIDDEN or wait is None:
                raise
            await anyio.sleep(wait)
        else:
            return DocumentRef(
                storage_path=minted.storage_path,
                mime_type=request.mime_type,
                filename=request.filename,
            )


async def _put(calls: Calls, minted: UploadResponse, content: bytes, patience: Patience) -> None:
    """Send the bytes until the storage has taken or refused them; as safe to repeat as the mint."""
    request = _request(minted, content)
    while True:
        try:
            status, _, answer = await calls.send(request)
            if status in STATUSES:
                raise UnreadableAnswerError(status, "the storage is not available")
        except ClaimLedgerError as error:
            wait = patience.wait_seconds(MINT_UPLOAD_URL, error)
            if wait is None:
                raise
            await anyio.sleep(wait)
            continue
        if not 200 <= status < 300:  # noqa: PLR2004 - what HTTP calls a success
            code = _CODE.search(answer)
            raise UploadRefusedError(status, code[1].decode() if code else "")
        return


def _request(minted: UploadResponse, content: bytes) -> httpx2.Request:
    """Return the request, whose URL is shown without the signature in its query.

    The HTTP client logs URLs. So the path with the query is given apart, as the request's target.
    """
    url = httpx2.URL(minted.upload_url)
    return httpx2.Request(
        "PUT",
        url.copy_with(query=None),
        headers={"User-Agent": USER_AGENT, **minted.required_headers},
        content=content,
        extensions={"target": url.raw_path},
    )
