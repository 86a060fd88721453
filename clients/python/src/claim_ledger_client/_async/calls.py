"""One call: requests until one is answered, or until there is no point in another."""

import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import TypeVar

import anyio
import httpx2
import msgspec

from claim_ledger_client._connection import (
    ANSWER_BYTES_MAX,
    address,
    answer_of,
    failure_of,
    headers_of,
    timeouts,
)
from claim_ledger_client._model import Answer
from claim_ledger_client.errors import ClaimLedgerError, ConnectionLostError
from claim_ledger_client.operations import Operation
from claim_ledger_client.retries import Patience, Retries

T = TypeVar("T", bound=Answer)
log = logging.getLogger("claim_ledger_client")


class Calls:
    """Sends the requests of all resources with one key."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        api_key: str,
        base_url: str,
        timeout_seconds: float,
        retries: Retries,
    ) -> None:
        self.retries = retries
        self._http = http
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds

    async def call(
        self,
        operation: Operation,
        into: type[T],
        *,
        body: msgspec.Struct | None = None,
        query: Mapping[str, str | int | None] | None = None,
        path: Mapping[str, str] | None = None,
    ) -> T:
        """Return the answer; raise the error of the last attempt."""
        url = address(self._base_url, operation.path, path or {})
        content = None if body is None else msgspec.json.encode(body)
        given = {name: one for name, one in (query or {}).items() if one is not None}
        request = self._http.build_request(
            operation.method,
            url,
            params=given or None,
            content=content,
            # No local variable holds them: reports of errors show those, and these have the key.
            headers=headers_of(self._api_key, body=body is not None),
        )
        patience = Patience(self.retries)
        while True:
            try:
                status, received, answer = await self.send(request)
                decoded = answer_of(status, received, answer, into)
            except ClaimLedgerError as error:
                wait = patience.wait_seconds(operation, error)
                if wait is None:
                    raise
                log.info("%s: %s; again in %.1f s", operation.id, type(error).__name__, wait)
            else:
                if decoded.payload_matches is False:
                    log.warning(
                        "%s: a repeat with another body, which changed nothing (%s)",
                        operation.id,
                        decoded.request_id,
                    )
                return decoded
            await anyio.sleep(wait)

    async def send(self, request: httpx2.Request) -> tuple[int, httpx2.Headers, bytes]:
        """Return status, headers and body of one attempt's answer."""
        request.extensions |= {"timeout": timeouts(self._timeout_seconds).as_dict()}
        body = bytearray()
        try:
            response = await self._http.send(request, stream=True)
            # Each read has the time-out anew, so a body that drips would never end, as a head does.
            until = time.monotonic() + self._timeout_seconds
            async with aclosing(response):
                stream = response.stream
                assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - for the types
                async for chunk in stream:
                    body += chunk
                    if time.monotonic() > until:
                        raise ConnectionLostError("the answer took too long")
                    if len(body) > ANSWER_BYTES_MAX:
                        raise ConnectionLostError("the answer is too large")
                return response.status_code, response.headers, bytes(body)
        except httpx2.HTTPError as error:
            raise failure_of(error) from error
