"""`/console/{partner_id}/links` and `/onboardings`: those of a partner, and what became of each."""

from collections.abc import Mapping

from litestar import Response, Router, get
from litestar.params import FromPath

from projections.connect_links.reader import ConnectLinksReader
from projections.onboardings.reader import OnboardingsReader
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.pages.console.frame import MemberOf, console_page
from service.pages.console.listing import asked_place, mode_of, next_place

PAGE = 50


def links_router(
    member_of: MemberOf,
    links: Mapping[Mode, ConnectLinksReader],
    onboardings: Mapping[Mode, OnboardingsReader],
) -> Router:
    """Return the router of connect links and onboardings.

    Entity ids of live mode are not shown: their customers pass them on (decision 16).
    """

    @get("/console/{partner_id:str}/links", opt={"page": "member"})
    async def link_list(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        mode = mode_of(request)
        rows = await links[mode].page(partner_id, PAGE + 1, asked_place(request))
        return console_page(
            request,
            member,
            "links",
            "console/links.html",
            mode=mode,
            links=rows[:PAGE],
            before=next_place(rows, PAGE, "issued_at", "link_id"),
            is_first="before" not in request.query_params,
        )

    @get("/console/{partner_id:str}/onboardings", opt={"page": "member"})
    async def onboarding_list(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        mode = mode_of(request)
        rows = await onboardings[mode].page(partner_id, PAGE + 1, asked_place(request))
        return console_page(
            request,
            member,
            "onboardings",
            "console/onboardings.html",
            mode=mode,
            onboardings=rows[:PAGE],
            before=next_place(rows, PAGE, "started_at", "onboarding_id"),
            is_first="before" not in request.query_params,
        )

    return Router("/", route_handlers=[link_list, onboarding_list])
