"""The middleware around all that routes: whether a request's host and path are ours."""

import time
from dataclasses import dataclass

from litestar.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Refusal
from service.http.hosts import Hosts
from service.http.paths import is_canonical
from service.operations.addresses import LIVE, READY
from service.operations.early_refusal import EarlyRefusal
from service.operations.metrics import Metrics

NOWHERE = "/%"
"""Routed nowhere: no route begins so, or has a parameter in this place."""


def wrong_host(public_url: str) -> Refusal:
    """Return the refusal of a request that names another host than the public one."""
    return Refusal("host_unknown", f"This service is reached at {public_url}.")


@dataclass(frozen=True, slots=True)
class AddressMiddleware:
    """Refuses other hosts; routes a path in any form but its one form nowhere.

    Load balancers ask for the health of a process by its address.
    """

    app: ASGIApp
    hosts: Hosts
    api_path: str
    refusal: EarlyRefusal
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            path = scope["path"]
            if not is_canonical(path, scope.get("raw_path") or path.encode()):
                is_api = path.startswith(f"{self.api_path}/")  # answers in its own way
                scope["path"] = f"{self.api_path}{NOWHERE}" if is_api else NOWHERE
            if scope["path"] not in {LIVE, READY} and not self.hosts.include(scope["headers"]):
                started = time.perf_counter()
                await self.refusal.send(send)
                row, seconds = self.refusal.refusal.row, time.perf_counter() - started
                self.metrics.request("unknown", scope["method"], row.status, row.code, seconds)
                return
        await self.app(scope, receive, send)
