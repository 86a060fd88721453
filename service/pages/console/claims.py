"""`/console/{partner_id}/claims`: a partner's claims over all its entities, newest first."""

from collections.abc import Mapping

from litestar import Response, Router, get
from litestar.params import FromPath

from projections.claim_list.reader import ClaimListReader
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.pages.console.frame import MemberOf, console_page
from service.pages.console.listing import asked, mode_of

PAGE = 50


def claims_router(member_of: MemberOf, claims: Mapping[Mode, ClaimListReader]) -> Router:
    """Return the router of the list of claims."""

    @get("/console/{partner_id:str}/claims", opt={"page": "member"})
    async def claim_list(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        mode = mode_of(request)
        after = asked(request, "after")
        rows, older = await claims[mode].page_of_partner(partner_id, limit=PAGE, after=after)
        return console_page(
            request,
            member,
            "claims",
            "console/claims.html",
            mode=mode,
            claims=rows,
            older=older,
            is_first=after is None,
        )

    return Router("/", route_handlers=[claim_list])
