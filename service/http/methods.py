"""OPTIONS is refused like every method that a path does not take.

The framework would answer it by itself: behind the gate, charged to the partner, and with the
methods of one of a path's handlers alone. No browser calls this API, so nothing needs it.
"""

from litestar.enums import ScopeType
from litestar.exceptions import MethodNotAllowedException
from litestar.middleware import ASGIMiddleware
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, Receive, Scope, Send


class OptionsRefused(ASGIMiddleware):
    """Goes around every route."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Let everything else through."""
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
