"""Refuse OPTIONS like every other method that a path does not support.

The framework's own handling would run behind the gate, charge the partner, and list the methods
of only one of a path's handlers. No browser calls this API, so nothing needs OPTIONS.
"""

from litestar.enums import ScopeType
from litestar.exceptions import MethodNotAllowedException
from litestar.middleware import ASGIMiddleware
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, Receive, Scope, Send


class OptionsRefused(ASGIMiddleware):
    """Refuses OPTIONS on every route."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Refuse OPTIONS; pass everything else on."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            methods = {
                str(method)
                for route in scope["litestar_app"].routes
                if isinstance(route, HTTPRoute) and route.path_format == scope["path_template"]
                for method in route.methods
            }
            raise MethodNotAllowedException(headers={"Allow": allowed(methods)})
        await next_app(scope, receive, send)


def allowed(methods: set[str]) -> str:
    """Return the value of `Allow` for a path's methods."""
    return ", ".join(sorted(methods - {"OPTIONS"}))
