"""`/console/{partner_id}/claims`, `/links` and `/onboardings`: a partner's own, newest first."""

from collections.abc import Mapping

from litestar import get

from projections.claim_list.reader import ClaimListReader
from projections.connect_links.reader import ConnectLinksReader
from projections.onboardings.reader import OnboardingsReader
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.console.listing import asked, asked_place, mode_of, shown_page
from service.pages.site_map import Html, Page, PathText

PAGE = 50


def lists_router(
    claims: Mapping[Mode, ClaimListReader],
    links: Mapping[Mode, ConnectLinksReader],
    onboardings: Mapping[Mode, OnboardingsReader],
) -> OneOffRouter:
    """Return the router of the lists of claims, connect links and onboardings.

    Links and onboardings do not show entity ids of live mode: their customers pass them on.
    """

    @get("/claims", opt={"page": Page("member", "partner_claims.nav", ACTIVITY)})
    async def claim_list(request: AnyRequest, partner_id: PathText) -> Html:
        """List the partner's claims over all entities."""
        mode, after = mode_of(request), asked(request, "after")
        rows, older = await claims[mode].page_of_partner(partner_id, limit=PAGE, after=after)
        return console_page(
            request, "claims.html", mode=mode, claims=rows, older=older, is_first=after is None
        )

    @get("/links", opt={"page": Page("member", "links.nav", ACTIVITY)})
    async def link_list(request: AnyRequest, partner_id: PathText) -> Html:
        """List connect links and what became of them."""
        mode = mode_of(request)
        rows = await links[mode].page(partner_id, PAGE + 1, asked_place(request))
        shown = shown_page(request, "links", rows, PAGE, "issued_at", "link_id")
        return console_page(request, "links.html", mode=mode, **shown)

    @get("/onboardings", opt={"page": Page("member", "onboardings.nav", ACTIVITY)})
    async def onboarding_list(request: AnyRequest, partner_id: PathText) -> Html:
        """List onboardings and what became of them."""
        mode = mode_of(request)
        rows = await onboardings[mode].page(partner_id, PAGE + 1, asked_place(request))
        shown = shown_page(request, "onboardings", rows, PAGE, "started_at", "onboarding_id")
        return console_page(request, "onboardings.html", mode=mode, **shown)

    return OneOffRouter(CONSOLE, route_handlers=[claim_list, link_list, onboarding_list])
