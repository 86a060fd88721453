"""All pages, behind one middleware and one set of handlers."""

from collections.abc import Sequence

from litestar import Router
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from service.pages.assets import ASSETS
from service.pages.shell import EXCEPTION_HANDLERS
from service.pages.visit import Visits


def pages_routers(visits: Visits, routers: Sequence[Router]) -> list[Router]:
    """Return the router of all pages, and that of what they are dressed in."""
    for router in routers:
        _answer_head(router)
    pages = Router(
        "/",
        route_handlers=list(routers),
        middleware=[visits],
        exception_handlers=EXCEPTION_HANDLERS,
    )
    return [pages, Router("/", route_handlers=ASSETS.handlers())]


def _answer_head(router: Router) -> None:
    """Let every page that answers GET answer HEAD: mail scanners ask so, and mean no harm."""
    for route in router.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            _add_head(handler)


def _add_head(handler: HTTPRouteHandler) -> None:
    if "GET" in handler.http_methods:
        handler.http_methods.add("HEAD")
