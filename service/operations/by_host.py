"""Two applications behind one listener, told apart by the host that a request names."""

from dataclasses import dataclass

from litestar.types import ASGIApp, Receive, Scope, Send

from service.http.hosts import Hosts
from service.operations.addresses import LIVE, READY


@dataclass(frozen=True, slots=True)
class ByHost:
    """Passes requests that name one of some hosts to an application of their own.

    The other one has everything else, its start and its end, too. Load balancers ask it for the
    health of a process, under whatever name.
    """

    app: ASGIApp
    apart: ASGIApp
    hosts: Hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_apart = (
            scope["type"] == "http"
            and scope["path"] not in {LIVE, READY}
            and self.hosts.include(scope["headers"])
        )
        await (self.apart if is_apart else self.app)(scope, receive, send)
