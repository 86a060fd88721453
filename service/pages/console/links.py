"""`/console/{partner_id}/links` and `/onboardings`: those of a partner, and what became of each."""

from collections.abc import Mapping

from litestar import Response, Router, get
from litestar.params import FromPath

from projections.connect_links.reader import ConnectLinksReader
from projections.onboardings.reader import OnboardingsReader
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.pages.console.frame import CONSOLE, console_page
from service.pages.console.listing import asked_place, mode_of, shown_page
from service.pages.site_map import Page

PAGE = 50


def links_router(
    links: Mapping[Mode, ConnectLinksReader], onboardings: Mapping[Mode, OnboardingsReader]
) -> Router:
    """Return the router of connect links and onboardings.

    Entity ids of live mode are not shown: their customers pass them on.
    """

    @get("/links", opt={"page": Page("member", "links.nav")})
    async def link_list(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        """List connect links and what became of them."""
        mode = mode_of(request)
        rows = await links[mode].page(partner_id, PAGE + 1, asked_place(request))
        shown = shown_page(request, "links", rows, PAGE, "issued_at", "link_id")
        return console_page(request, "links.html", mode=mode, **shown)

    @get("/onboardings", opt={"page": Page("member", "onboardings.nav")})
    async def onboarding_list(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        """List onboardings and what became of them."""
        mode = mode_of(request)
        rows = await onboardings[mode].page(partner_id, PAGE + 1, asked_place(request))
        shown = shown_page(request, "onboardings", rows, PAGE, "started_at", "onboarding_id")
        return console_page(request, "onboardings.html", mode=mode, **shown)

    return Router(CONSOLE, route_handlers=[link_list, onboarding_list])
