"""All pages, behind one middleware, one guard and one set of exception handlers."""

from collections.abc import Sequence

from litestar import Router
from litestar.routes import HTTPRoute

from service.http.router import OneOffRouter
from service.http.tracebacks import answered
from service.pages.assets import asset_routes
from service.pages.carried import WaitingForms
from service.pages.gate import PageGuard
from service.pages.shell import EXCEPTION_HANDLERS
from service.pages.site_map import SiteMap
from service.pages.visit import Visits, read_form


def pages_routers(visits: Visits, guard: PageGuard, routers: Sequence[Router]) -> list[Router]:
    """Return the router of all pages, and that of their assets."""
    for route in (route for router in routers for route in router.routes):
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            if "GET" in handler.http_methods:  # mail scanners ask by HEAD, and mean no harm
                handler.http_methods.add("HEAD")
    pages = OneOffRouter(
        "/",
        route_handlers=list(routers),
        middleware=[visits, WaitingForms()],
        guards=[guard],
        before_request=read_form,
        exception_handlers=answered(EXCEPTION_HANDLERS),
        opt={"site_map": SiteMap(routers)},
    )
    return [pages, OneOffRouter("/", route_handlers=asset_routes())]
