"""`/console/{partner_id}/onboardings`: the businesses that a partner referred, newest first."""

from collections.abc import Mapping

from litestar import get

from projections.onboardings.reader import OnboardingsReader
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.console.listing import asked_place, mode_of, shown_page
from service.pages.site_map import Html, Page, PathText

PAGE = 50


def onboardings_router(onboardings: Mapping[Mode, OnboardingsReader]) -> OneOffRouter:
    """Return the router of onboardings.

    It shows no entity ids of live mode: their customers pass them on.
    """

    @get("/onboardings", opt={"page": Page("member", "onboardings.nav", ACTIVITY)})
    async def onboarding_list(request: AnyRequest, partner_id: PathText) -> Html:
        """List onboardings and what became of them."""
        mode = mode_of(request)
        rows = await onboardings[mode].page(partner_id, PAGE + 1, asked_place(request))
        shown = shown_page(request, "onboardings", rows, PAGE, "started_at", "onboarding_id")
        return console_page(request, "onboardings.html", mode=mode, **shown)

    return OneOffRouter(CONSOLE, route_handlers=[onboarding_list])
