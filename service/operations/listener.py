"""What the operations listener answers: metrics, and health in detail. Plain ASGI.

It has no part in what the public reaches: another port, another process than the API's, and on
loopback unless the settings say otherwise.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from service.core.errors import Refusal
from service.http.hosts import Hosts, is_loopback
from service.operations.addresses import HEALTH, LIVE, METRICS
from service.operations.scrapes import Scrapes

_JSON: Final = "application/json"
_LOOPBACK: Final = Hosts("http://localhost")

_Scope = Mapping[str, Any]  # as ASGI has them: the worker does without a web framework
_Receive = Callable[[], Awaitable[Mapping[str, Any]]]
_Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_Answer = tuple[int, str, bytes]


class OperationsApp:
    """Answers `/metrics`, `/health` (503 where something is wrong) and `/health/live`."""

    def __init__(self, scrapes: Scrapes, host: str) -> None:
        """`host` is the address that it is served on."""
        self._scrapes = scrapes
        # On loopback, a web page could otherwise read it through the browser on this machine.
        self._hosts = _LOOPBACK if is_loopback(host) else None

    async def __call__(self, scope: _Scope, _receive: _Receive, send: _Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        status, media_type, body = await self._answer(scope)
        headers = [
            (b"content-type", media_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if scope["method"] == "HEAD":
            body = b""
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _answer(self, scope: _Scope) -> _Answer:
        path = scope["path"]
        if self._hosts is not None and not self._hosts.include(scope["headers"]):
            return _refusal("host_unknown")
        if path not in {METRICS, HEALTH, LIVE} or scope["raw_path"] != path.encode():
            return _refusal("not_found")
        if scope["method"] not in {"GET", "HEAD"}:
            return _refusal("method_not_allowed")
        if path == LIVE:
            return 200, _JSON, msgspec.json.encode({"status": "ok"})
        scrape = await self._scrapes.latest()
        if path == METRICS:
            return 200, CONTENT_TYPE_PLAIN_0_0_4, scrape.exposition
        return 200 if scrape.is_healthy else 503, _JSON, msgspec.json.encode(scrape.health)


def _refusal(code: str) -> _Answer:
    refusal = Refusal(code)
    return refusal.row.status, _JSON, msgspec.json.encode(refusal.envelope())
