"""The partner API as an assistant reaches it: with a test key, and no further than the sandbox."""

import json
from http import HTTPStatus
from typing import Any, Final, Self, cast

import httpx2

from service.cli.mcp.tools import UPLOAD_CHARACTERS_MAX, Json, Tool

SECONDS_MAX: Final = 30.0
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024


class SandboxFault(Exception):
    """The service cannot be reached, or its answer is not the API's."""


class Sandbox:
    """The API at `url`, which ends in `/v1`. Its key is shown nowhere."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx2.AsyncClient(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {key}", "User-Agent": "claim-ledger-mcp"},
            timeout=SECONDS_MAX,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._http.aclose()

    async def document(self) -> Json:
        """Return the OpenAPI document of the service."""
        status, document, _ = await self._exchange("GET", "/openapi.json")
        if status != HTTPStatus.OK or "paths" not in document:
            raise SandboxFault(f"the service has no OpenAPI document ({status})")
        return document

    async def call(self, tool: Tool, arguments: Json) -> tuple[bool, Json]:
        """Return whether it was refused, and the answer; a refusal says when to ask again."""
        path, query, body = tool.request(arguments)
        status, answer, after = await self._exchange(
            tool.method.upper(), path, params=query, json=body
        )
        refused = status >= HTTPStatus.BAD_REQUEST
        return refused, answer | ({"retry_after_seconds": after} if refused and after else {})

    async def upload(self, tool: Tool, arguments: Json) -> tuple[bool, Json]:
        """Return whether it was refused, and the entry of `document_refs`, or the refusal."""
        asked = {name: one for name, one in arguments.items() if name != "text"}
        text = str(arguments.get("text", ""))
        if len(text) > UPLOAD_CHARACTERS_MAX:
            raise SandboxFault(f"`text` has more than {UPLOAD_CHARACTERS_MAX:,} characters")
        content = text.encode()
        refused, minted = await self.call(tool, asked | {"max_bytes": len(content)})
        if refused:
            return refused, minted
        try:
            # To storage, without the key.
            async with httpx2.AsyncClient(timeout=SECONDS_MAX) as storage:
                answer = await storage.put(
                    minted["upload_url"], content=content, headers=minted["required_headers"]
                )
        except httpx2.HTTPError as error:
            raise SandboxFault(f"storage: no answer ({type(error).__name__})") from None
        if not answer.is_success:
            raise SandboxFault(f"storage refused the upload with {answer.status_code}")
        reference = {name: asked[name] for name in ("mime_type", "filename")}
        return False, {"storage_path": minted["storage_path"]} | reference

    async def _exchange(
        self,
        method: str,
        path: str,
        **given: Any,  # noqa: ANN401 - httpx2's own
    ) -> tuple[int, Json, str | None]:
        try:
            async with self._http.stream(method, path, **given) as response:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > ANSWER_BYTES_MAX:
                        raise SandboxFault("the answer is too large")
        except httpx2.HTTPError as error:
            raise SandboxFault(f"no answer ({type(error).__name__})") from None
        return response.status_code, _object(content), response.headers.get("retry-after")


def _object(content: bytes | bytearray) -> Json:
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise SandboxFault("the answer is not the API's")
    return cast("Json", value)
