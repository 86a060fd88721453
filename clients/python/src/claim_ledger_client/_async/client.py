"""The client: one key, one pool of connections, one attribute for each kind of resource."""

import ssl
from contextlib import aclosing
from types import TracebackType
from typing import Self

import httpx2

from claim_ledger_client._async.calls import Calls
from claim_ledger_client._async.resources import (
    Claims,
    ConnectRequests,
    Documents,
    Events,
    Onboardings,
)
from claim_ledger_client._connection import checked_key, checked_url
from claim_ledger_client.retries import Retries


class AsyncClient:
    """The partner API with one key. Close it, or use it in a `with` block.

    `base_url` ends in `/v1`. `timeout_seconds` is for each step of an attempt: to connect (at most
    ten seconds), to send a piece, to receive a piece of the answer's head, to receive all of its
    body. `verify` is a TLS context, for authorities of your own; `transport` takes the place of the
    network, for tests of yours. A proxy is taken from the environment (`HTTPS_PROXY`).
    """

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str,
        timeout_seconds: float = 30.0,
        retries: Retries | None = None,
        verify: ssl.SSLContext | bool = True,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        key, url = checked_key(api_key), checked_url(base_url)
        self.base_url = url
        self.mode = "live" if key.startswith("pk_live_") else "test"
        self._http = httpx2.AsyncClient(verify=verify, transport=transport)
        calls = Calls(self._http, key, url, timeout_seconds, retries or Retries())
        self.onboardings = Onboardings(calls)
        self.connect_requests = ConnectRequests(calls)
        self.documents = Documents(calls)
        self.claims = Claims(calls)
        self.events = Events(calls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.mode}, {self.base_url})"

    async def close(self) -> None:
        """End its connections."""
        async with aclosing(self._http):
            pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
