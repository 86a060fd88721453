"""`/`: what this is, and where to go on."""

from litestar import Response, Router, get

from service.http.bodies import AnyRequest
from service.pages.landing import LandingReader
from service.pages.shell import page
from service.pages.site_map import Page
from service.pages.visit import person_of


def home_router(landings: LandingReader) -> Router:
    """Return the router of the first page."""

    @get("/", opt={"page": Page("public")})
    async def home(request: AnyRequest) -> Response[bytes]:
        """Introduce the service, and link to where to go on."""
        person = person_of(request)
        landing = await landings.of(person.address_hash) if person else None
        return page(request, "home.html", landing=landing)

    return Router("/", route_handlers=[home])
