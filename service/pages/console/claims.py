"""`/console/{partner_id}/claims`: a partner's claims over all its entities, newest first."""

from collections.abc import Mapping

from litestar import Response, Router, get
from litestar.params import FromPath

from projections.claim_list.reader import ClaimListReader
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.pages.console.frame import CONSOLE, console_page
from service.pages.console.listing import asked, mode_of
from service.pages.site_map import Page

PAGE = 50


def claims_router(claims: Mapping[Mode, ClaimListReader]) -> Router:
    """Return the router of the list of claims."""

    @get("/claims", opt={"page": Page("member", "partner_claims.nav")})
    async def claim_list(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        """List the partner's claims over all entities."""
        mode, after = mode_of(request), asked(request, "after")
        rows, older = await claims[mode].page_of_partner(partner_id, limit=PAGE, after=after)
        return console_page(
            request, "claims.html", mode=mode, claims=rows, older=older, is_first=after is None
        )

    return Router(CONSOLE, route_handlers=[claim_list])
