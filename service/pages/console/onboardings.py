"""`/console/{partner_id}/onboardings`: referred businesses, to filter, search and download."""

from collections.abc import Mapping
from typing import Final

from litestar import get
from litestar.response import Stream

from projections.onboardings.reader import (
    STATES,
    FoundOnboardings,
    OnboardingFilter,
    OnboardingsReader,
    Place,
)
from service.facts.caller import Mode
from service.facts.onboardings import onboarding_stream
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.csv_file import ROWS_MAX, CsvFiles
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.console.listing import (
    asked_one_of,
    asked_place,
    mode_of,
    place,
    query_of,
    sought,
)
from service.pages.gate import member_of
from service.pages.site_map import Html, Page, PathText

PAGE: Final = 50
EPOCHS_MAX: Final = 50
"""Of a sandbox, the newest: those in which an onboarding is looked for by its reference."""
_COLUMNS: Final = (
    *("onboarding_id", "partner_user_id", "state", "started_at", "completed_at", "expires_at"),
    *("connected_at", "disconnected_at"),
)


def onboardings_router(
    onboardings: Mapping[Mode, OnboardingsReader], files: CsvFiles
) -> OneOffRouter:
    """Return the router of onboardings.

    It shows no entity ids of live mode: their customers pass them on.
    """

    @get("/onboardings", opt={"page": Page("approved", "onboardings.nav", ACTIVITY)})
    async def onboarding_list(request: AnyRequest, partner_id: PathText) -> Html:
        """List onboardings and what became of them."""
        mode, last = mode_of(request), asked_place(request)
        wanted, text = _wanted(request, mode), sought(request)
        found = await onboardings[mode].found(partner_id, wanted, PAGE, last)
        kept = {"state": wanted.state, "q": text}
        return console_page(
            request,
            "onboardings.html",
            mode=mode,
            onboardings=found.onboardings,
            wanted=wanted,
            sought=text,
            states=STATES,
            kept=query_of(**kept),
            first=query_of(mode=mode, **kept) if last else "",
            older=query_of(mode=mode, **kept, before=place(found.last)) if found.last else "",
            rows_max=ROWS_MAX,
        )

    @get("/onboardings.csv", opt={"page": Page("approved")})
    async def onboardings_file(request: AnyRequest, partner_id: PathText) -> Stream:
        """Send the same onboardings as a file."""
        mode = mode_of(request)
        wanted = _wanted(request, mode)

        async def page(limit: int, last: Place | None) -> FoundOnboardings:
            return await onboardings[mode].found(partner_id, wanted, limit, last)

        return files.file(partner_id, f"onboardings-{mode}", _COLUMNS, page)

    return OneOffRouter(CONSOLE, route_handlers=[onboarding_list, onboardings_file])


def _wanted(request: AnyRequest, mode: Mode) -> OnboardingFilter:
    """Return what is asked for: an id, or a reference, from which the streams follow."""
    state, text = asked_one_of(request, "state", STATES), sought(request)
    if text is None:
        return OnboardingFilter(state)
    member = member_of(request)
    newest = member.sandbox_epoch if mode == "test" else 0
    streams = [
        onboarding_stream(mode, epoch, member.partner_id, text)
        for epoch in range(max(0, newest - EPOCHS_MAX + 1), newest + 1)
    ]
    return OnboardingFilter(state, text, streams)
