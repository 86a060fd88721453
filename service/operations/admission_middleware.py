"""A place for each request, or a refusal that costs next to nothing.

A busy process refuses most of what comes, so a refusal passes none of the layers that others do:
neither routing nor authentication, and it is counted but not logged.
"""

import time
from dataclasses import dataclass

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from service.core.errors import Refusal
from service.http.admission import BUSY, Admission
from service.operations.early_refusal import EarlyRefusal
from service.operations.metrics import Metrics

REFUSAL = Refusal("service_unavailable", BUSY)


@dataclass(frozen=True, slots=True)
class AdmissionMiddleware:
    """Refuses requests below `api_path` that would not be answered in time; admits all others."""

    app: ASGIApp
    admission: Admission
    api_path: str
    refusal: EarlyRefusal
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limited = scope["path"].startswith(self.api_path)
        place = self.admission.enter(scope["method"], limited=limited)
        if place is None:
            await self._refuse(scope, send)
            return
        scope["state"] = {"admitted": place}
        try:
            await self.app(scope, receive, send)
        finally:
            place.leave()

    async def _refuse(self, scope: HTTPScope, send: Send) -> None:
        started = time.perf_counter()
        await self.refusal.send(send)
        seconds = time.perf_counter() - started
        row = self.refusal.refusal.row
        self.metrics.request("refused", scope["method"], row.status, row.code, seconds)
