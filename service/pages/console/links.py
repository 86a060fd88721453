"""`/console/{partner_id}/links`: connect links, to filter, search, sort and download."""

from collections.abc import Mapping
from typing import Any, Final

from litestar import get
from litestar.response import Stream

from projections.connect_links.reader import (
    STATES,
    ConnectLinksReader,
    FoundLinks,
    LinkFilter,
    Place,
)
from service.core.errors import Refusal
from service.facts.caller import Mode
from service.facts.connections import ConnectLinkDeclined, ConnectLinkIssued, ConnectLinkRedeemed
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Ledger
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
from service.pages.site_map import Html, Page, PathText

LINKS: Final = {"page": Page("approved", "links.nav", ACTIVITY)}
PAGE: Final = 50
SORTS: Final = ("newest", "oldest")
_COLUMNS: Final = ("link_id", "partner_user_id", "state", "issued_at", "expires_at")
_STEPS: Final[Mapping[type[Event], str]] = {
    ConnectLinkIssued: "issued",
    ConnectLinkRedeemed: "redeemed",
    ConnectLinkDeclined: "declined",
}


def links_router(
    links: Mapping[Mode, ConnectLinksReader], ledgers: Mapping[Mode, Ledger], files: CsvFiles
) -> OneOffRouter:
    """Return the router of connect links.

    Entity ids of live mode are not shown: their customers pass them on.
    """

    @get("/links", opt=LINKS)
    async def link_list(request: AnyRequest, partner_id: PathText) -> Html:
        """List connect links and what became of them."""
        mode, wanted, last = mode_of(request), _wanted(request), asked_place(request)
        found = await links[mode].page(partner_id, wanted, PAGE, last)
        kept = _query(wanted)
        return console_page(
            request,
            "links.html",
            mode=mode,
            links=found.links,
            wanted=wanted,
            states=STATES,
            sorts=SORTS,
            kept=query_of(**kept),
            first=query_of(mode=mode, **kept) if last else "",
            older=query_of(mode=mode, **kept, before=place(found.last)) if found.last else "",
            rows_max=ROWS_MAX,
        )

    @get("/links.csv", opt={"page": Page("approved")})
    async def links_file(request: AnyRequest, partner_id: PathText) -> Stream:
        """Send the same links as a file."""
        mode, wanted = mode_of(request), _wanted(request)

        async def page(limit: int, last: Place | None) -> FoundLinks:
            return await links[mode].page(partner_id, wanted, limit, last)

        return files.file(partner_id, f"connect-links-{mode}", _COLUMNS, page)

    @get("/links/{link_id:str}", opt=LINKS)
    async def link(request: AnyRequest, partner_id: PathText, link_id: PathText) -> Html:
        """Show one link and what happened to it."""
        mode = mode_of(request)
        row = None if "\0" in link_id else await links[mode].one(partner_id, link_id)
        if row is None:
            raise Refusal("not_found")
        past = await ledgers[mode].read(row["stream_id"])
        return console_page(request, "link.html", mode=mode, link=row, steps=_steps(past))

    return OneOffRouter(CONSOLE, route_handlers=[link_list, links_file, link])


def _steps(past: list[Recorded]) -> list[dict[str, Any]]:
    """Return what happened to a link, oldest first; a request is named if it is the partner's."""
    return [
        {
            "what": _STEPS[type(one.event)],
            "at": one.meta.at,
            "request_id": one.meta.request_id if isinstance(one.event, ConnectLinkIssued) else None,
        }
        for one in past
        if type(one.event) in _STEPS
    ]


def _wanted(request: AnyRequest) -> LinkFilter:
    return LinkFilter(
        state=asked_one_of(request, "state", STATES),
        sought=sought(request),
        oldest_first=asked_one_of(request, "sort", SORTS) == "oldest",
    )


def _query(wanted: LinkFilter) -> dict[str, str | None]:
    sort = "oldest" if wanted.oldest_first else None
    return {"state": wanted.state, "q": wanted.sought, "sort": sort}
