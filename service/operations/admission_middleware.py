"""The outermost middleware: a place for each request, or a refusal that costs next to nothing.

A busy process refuses most of what comes, so a refusal passes none of the layers that others do:
neither routing nor authentication, and it is counted but not logged.
"""

import time
from dataclasses import dataclass, field

import msgspec
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId
from service.http.admission import BUSY, SMALL_BYTES_MAX, Admission
from service.http.bodies import declared_bytes, drop_body
from service.http.responses import refusal_headers
from service.operations.metrics import Metrics

_REFUSAL = Refusal("service_unavailable", BUSY)
_BODY = msgspec.json.encode(_REFUSAL.envelope())


@dataclass(slots=True)
class AdmissionMiddleware:
    """Refuses requests below `api_path` that would not be answered in time; admits all others."""

    app: ASGIApp
    admission: Admission
    api_path: str
    docs_url: str
    metrics: Metrics
    clock: Clock
    new_id: NewId
    _headers: list[tuple[bytes, bytes]] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the headers of a refusal."""
        fields = {
            "Content-Type": "application/json",
            "Content-Length": str(len(_BODY)),
            **refusal_headers(_REFUSAL, self.docs_url),
        }
        self._headers = [(name.lower().encode(), text.encode()) for name, text in fields.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limited = scope["path"].startswith(self.api_path)
        place = self.admission.enter(scope["method"], limited=limited)
        if place is None:
            await self._refuse(scope, receive, send)
            return
        scope["state"] = {"admitted": place}
        try:
            await self.app(scope, receive, send)
        finally:
            place.leave()

    async def _refuse(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        if declared_bytes(scope) > SMALL_BYTES_MAX:
            await drop_body(receive)
        request_id = self.new_id("req", self.clock()).encode()
        await send({
            "type": "http.response.start",
            "status": _REFUSAL.row.status,
            "headers": [*self._headers, (b"x-request-id", request_id)],
        })  # fmt: skip
        await send({"type": "http.response.body", "body": _BODY, "more_body": False})
        seconds = time.perf_counter() - started
        self.metrics.request(
            "refused", scope["method"], _REFUSAL.row.status, _REFUSAL.code, seconds
        )
