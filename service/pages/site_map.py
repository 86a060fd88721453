"""Every page: who may see it, what it is for, and its place in the navigation.

A handler carries the first and the last as `opt={"page": Page(…)}`; its docstring says what the
page is for. The site map is collected from the handlers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from litestar import Response, Router
from litestar.params import FromPath
from litestar.routes import HTTPRoute

from service.http.bodies import AnyRequest

Who = Literal["public", "token", "signed-in", "member", "approved", "staff"]
"""Anyone; whoever holds the link; whoever is signed in; a member of the partner that the path
names, or of it once it is approved; the service's team."""

Html = Response[bytes]
"""A page, or a redirect to one."""

PathText = FromPath[str]
"""A parameter of a page's path."""

_PARAMETER: Final = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class Page:
    """`place` is the text that names a place in the navigation: the first page there leads it.

    `group` is the text that names what the place belongs to, where the navigation has groups.
    The guard charges forms that are sent by a link, but for a handler that `charges_itself`.
    """

    who: Who
    place: str = ""
    group: str = ""
    charges_itself: bool = False


class RoutedPage(NamedTuple):
    """One method of one path, as the application routes it. GET answers HEAD too."""

    method: str
    path: str
    who: Who
    place: str
    group: str
    purpose: str


class SiteMap:
    """The pages of all routers, in their order."""

    def __init__(self, routers: Sequence[Router]) -> None:
        """Raise KeyError for a handler without a `Page`."""
        self.pages = tuple(_pages(routers))
        readable = [page.path for page in self.pages if page.method == "GET"]
        self._readable = [
            re.compile("[^/]+".join(map(re.escape, _PARAMETER.split(path)))) for path in readable
        ]

    def navigation(self, area: str) -> list[RoutedPage]:
        """Return the first page of each place, of the pages whose paths begin with `area`."""
        places: dict[str, RoutedPage] = {}
        for page in self.pages:
            if page.place and page.method == "GET" and page.path.startswith(area):
                places.setdefault(page.place, page)
        return list(places.values())

    def page_of_form(self, path: str) -> str:
        """Return the nearest path that answers GET: `path` itself, or one above it."""
        while path and not any(pattern.fullmatch(path) for pattern in self._readable):
            path = path.rpartition("/")[0]
        return path or "/"


def site_map_of(request: AnyRequest) -> SiteMap:
    """Return the map of all pages, which their router carries."""
    return request.route_handler.opt["site_map"]


def _pages(routers: Sequence[Router]) -> Iterator[RoutedPage]:
    for router in routers:
        for route in router.routes:
            for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
                for method in handler.http_methods & {"GET", "POST"}:
                    page, purpose = handler.opt["page"], handler.fn.__doc__ or ""
                    yield RoutedPage(method, route.path, page.who, page.place, page.group, purpose)
