"""Connecting and disconnecting a business on its customer's behalf (decision 16)."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from service.core.errors import Refusal
from service.facts.access import Access
from service.facts.connections import connection_stream
from service.http.bodies import AnyRequest
from service.pages.backoffice.entities import PATH, entity_page
from service.pages.backoffice.frame import BackofficeContext, ModeContext, staff_cause, staff_of
from service.pages.shell import lead_to
from service.pages.visit import read_form


def handing_router(desk: BackofficeContext) -> Router:
    """Return the router of handing entity ids to partners: those of live mode alone.

    A business of the sandbox belongs to one partner, who has its id.
    """
    live = desk.sides["live"]

    @get(f"{PATH}/connect", opt={"page": "staff"})
    async def confirm(request: AnyRequest, entity_id: FromPath[str]) -> Response[bytes]:
        await staff_of(request, desk.staff)
        partner_id = request.query_params.get("partner_id", "").strip()
        if not partner_id:
            return lead_to(f"/backoffice/entities/{entity_id}")
        partner = (await desk.accounts.names([partner_id])).get(partner_id)
        entity = await live.look_up.entity(entity_id)
        if entity is None:
            return desk.unknown(request, entity_id)
        if partner is None or partner["status"] != "approved":
            return await entity_page(desk, request, entity_id, partner_id, 400)
        access = await live.connection_list.access(partner_id, entity_id)
        return desk.page(
            request,
            "",
            "connect.html",
            entity=entity,
            partner=partner,
            access=access,
            ended_by=await _ended_by(live, partner_id, access),
        )

    @post(f"{PATH}/connect", opt={"page": "staff"})
    async def connect(request: AnyRequest, entity_id: FromPath[str]) -> Response[bytes]:
        cause = await staff_cause(request, desk.staff)
        partner_id = (await read_form(request)).get("partner_id", "")
        if await live.look_up.entity(entity_id) is None:
            return desk.unknown(request, entity_id)
        await live.connections.connect_by_staff(entity_id, partner_id, cause)
        return lead_to(f"/backoffice/entities/{entity_id}/handed/{partner_id}")

    @get(f"{PATH}/handed/{{partner_id:str}}", opt={"page": "staff"})
    async def handed(
        request: AnyRequest, entity_id: FromPath[str], partner_id: FromPath[str]
    ) -> Response[bytes]:
        await staff_of(request, desk.staff)
        try:
            access = await live.connection_list.access(partner_id, entity_id)
        except Refusal:
            return desk.unknown(request, entity_id)
        if not access.connected:
            return lead_to(f"/backoffice/entities/{entity_id}")
        names = await desk.accounts.names([partner_id])
        return desk.page(request, "", "handed.html", entity=access, partner=names[partner_id])

    return Router("/", route_handlers=[confirm, connect, handed])


async def _ended_by(side: ModeContext, partner_id: str, access: Access) -> str:
    """Return who ended a connection, as its last event names them; empty where nobody did."""
    if access.disconnected_at is None:
        return ""
    stream = connection_stream("live", partner_id, access.entity_id)
    return await side.look_up.actor(stream, access.version) or ""


def disconnecting_router(desk: BackofficeContext) -> Router:
    """Return the router of ending connections, in either mode."""

    @get(f"{PATH}/disconnect/{{partner_id:str}}", opt={"page": "staff"})
    async def confirm(
        request: AnyRequest, entity_id: FromPath[str], partner_id: FromPath[str]
    ) -> Response[bytes]:
        await staff_of(request, desk.staff)
        found = await desk.entity(entity_id)
        if found is None:
            return desk.unknown(request, entity_id)
        names = await desk.accounts.names([partner_id])
        if partner_id not in names:
            return desk.unknown(request, partner_id)
        return desk.page(request, "", "disconnect.html", entity=found[1], partner=names[partner_id])

    @post(f"{PATH}/disconnect/{{partner_id:str}}", opt={"page": "staff"})
    async def disconnect(
        request: AnyRequest, entity_id: FromPath[str], partner_id: FromPath[str]
    ) -> Response[bytes]:
        cause = await staff_cause(request, desk.staff)
        await read_form(request)
        found = await desk.entity(entity_id)
        if found is None:
            return desk.unknown(request, entity_id)
        await desk.sides[found[0]].connections.disconnect(entity_id, partner_id, cause)
        return lead_to(f"/backoffice/entities/{entity_id}")

    return Router("/", route_handlers=[confirm, disconnect])
