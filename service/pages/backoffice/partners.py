"""`/backoffice/partners`: the partners, by state, and what each of them has."""

from typing import Final

from litestar import Response, Router, get
from litestar.params import FromPath

from service.facts.partners import TeamMember
from service.http.bodies import AnyRequest
from service.http.scalars import LIMITS
from service.pages.backoffice.frame import BackofficeContext, staff_of
from service.people.person import Person

STATES: Final = ("pending", "approved", "declined", "revoked")
HERE: Final = "/backoffice/partners"
REASON_CHARACTERS_MAX: Final = LIMITS["summary"]


def partners_router(desk: BackofficeContext) -> Router:
    """Return the router of looking at partners."""

    @get("/backoffice/partners", opt={"page": "staff"})
    async def listed(request: AnyRequest) -> Response[bytes]:
        await staff_of(request, desk.staff)
        asked = request.query_params.get("state", "")
        state = asked if asked in STATES else STATES[0]
        after = request.query_params.get("after", "")
        partners, next_page = await desk.accounts.partners(state, after or None)
        return desk.page(
            request,
            HERE,
            "partners.html",
            state=state,
            states=STATES,
            counts=await desk.accounts.counts(),
            partners=partners,
            next_page=next_page,
        )

    @get("/backoffice/partners/{partner_id:str}", opt={"page": "staff"})
    async def one(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        await staff_of(request, desk.staff)
        return await partner_page(desk, request, partner_id)

    return Router("/", route_handlers=[listed, one])


async def partner_page(
    desk: BackofficeContext,
    request: AnyRequest,
    partner_id: str,
    reason: str | None = None,
    status: int = 200,
) -> Response[bytes]:
    """Return one partner's page; `reason` is one that cannot be taken."""
    rows = await desk.partner_list.partners(partner_id)
    if not rows:
        return desk.unknown(request, partner_id)
    partner = await desk.partners.look(partner_id)
    return desk.page(
        request,
        HERE,
        "partner.html",
        status,
        partner=partner,
        members=[(one, member, _person_id(member)) for one, member in partner.members.items()],
        applied_at=rows[0]["applied_at"],
        keys=await desk.partner_list.keys(partner_id),
        reason=reason,
        reason_max=REASON_CHARACTERS_MAX,
    )


def _person_id(member: TeamMember) -> str | None:
    """Return by which id events name a member; None once their data is erased."""
    if member.email is None or member.email_hash is None:
        return None
    return Person(member.email, member.email_hash, "").person_id
