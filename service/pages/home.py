"""`/`: what this is, and where to go on."""

from litestar import Response, Router, get

from service.http.bodies import AnyRequest
from service.pages.landing import LandingReader
from service.pages.shell import page
from service.pages.visit import person_of


def home_router(places: LandingReader) -> Router:
    """Return the router of the first page."""

    @get("/", opt={"page": "public"})
    async def front(request: AnyRequest) -> Response[bytes]:
        person = person_of(request)
        known = await places.of(person.address_hash) if person else None
        return page(request, "front.html", places=known)

    return Router("/", route_handlers=[front])
