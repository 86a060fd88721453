"""`/`: what this is, and where to go on."""

from litestar import Response, Router, get

from service.pages.places import PlacesReader
from service.pages.shell import page
from service.pages.visit import person_of
from service.web.body import AnyRequest


def front_router(places: PlacesReader) -> Router:
    """Answer the router of the first page."""

    @get("/", opt={"page": "public"})
    async def front(request: AnyRequest) -> Response[bytes]:
        person = person_of(request)
        known = await places.of(person.address_hash) if person else None
        return page(request, "front.html", places=known)

    return Router("/", route_handlers=[front])
