"""Approving, declining and revoking partners."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from service.http.bodies import AnyRequest
from service.pages.backoffice.frame import BackofficeContext, staff_cause, staff_of
from service.pages.backoffice.partners import HERE, REASON_CHARACTERS_MAX, partner_page
from service.pages.shell import lead_to
from service.pages.visit import read_form


def review_router(desk: BackofficeContext) -> Router:
    """Return the router of decisions about partners."""

    @post("/backoffice/partners/{partner_id:str}/approve", opt={"page": "staff"})
    async def approve(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        cause = await staff_cause(request, desk.staff)
        await read_form(request)
        await desk.partners.approve(partner_id, cause)
        return lead_to(f"{HERE}/{partner_id}")

    @post("/backoffice/partners/{partner_id:str}/decline", opt={"page": "staff"})
    async def decline(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        cause = await staff_cause(request, desk.staff)
        reason = (await read_form(request)).get("reason", "")
        if not 0 < len(reason) <= REASON_CHARACTERS_MAX:
            return await partner_page(desk, request, partner_id, reason, 400)
        await desk.partners.decline(partner_id, cause, reason)
        return lead_to(f"{HERE}/{partner_id}")

    @get("/backoffice/partners/{partner_id:str}/revoke", opt={"page": "staff"})
    async def confirm(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        await staff_of(request, desk.staff)
        partner = await desk.partners.look(partner_id)
        if not partner.status:
            return desk.unknown(request, partner_id)
        if partner.status != "approved":
            return lead_to(f"{HERE}/{partner_id}")
        return desk.page(request, HERE, "revoke.html", partner=partner)

    @post("/backoffice/partners/{partner_id:str}/revoke", opt={"page": "staff"})
    async def revoke(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        cause = await staff_cause(request, desk.staff)
        await read_form(request)
        await desk.partners.revoke(partner_id, cause)
        return lead_to(f"{HERE}/{partner_id}")

    return Router("/", route_handlers=[approve, decline, confirm, revoke])
