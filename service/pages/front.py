"""`/`: what this is, and where to go on."""

from litestar import Response, Router, get

from service.pages.shell import page
from service.web.body import AnyRequest


def front_router() -> Router:
    """Answer the router of the first page."""

    @get("/", opt={"page": "public"})
    async def front(request: AnyRequest) -> Response[bytes]:
        return page(request, "front.html")

    return Router("/", route_handlers=[front])
