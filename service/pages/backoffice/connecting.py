"""Connecting and disconnecting a business on its customer's behalf."""

from litestar import Router, get, post

from service.core.errors import Refusal
from service.facts.access import Access
from service.facts.connections import connection_stream
from service.http.bodies import AnyRequest
from service.ledger.codec import stored_form
from service.ledger.sql import queries
from service.pages.backoffice.entities import PATH, entity_page
from service.pages.backoffice.frame import (
    STAFF,
    BackofficeContext,
    IdUnknown,
    ModeContext,
    backoffice_page,
)
from service.pages.gate import staff_cause
from service.pages.shell import lead_to
from service.pages.site_map import Html, PathText
from service.pages.visit import form_of

_SQL = queries("service.pages.backoffice")


def handing_router(context: BackofficeContext) -> Router:
    """Return the router of handing entity ids to partners: those of live mode alone.

    A business of the sandbox belongs to one partner, who has its id.
    """
    live = context.modes["live"]

    @get("/connect", opt=STAFF)
    async def confirm(request: AnyRequest, entity_id: PathText) -> Html:
        """Explain what handing the entity id to a partner means, and ask for confirmation."""
        partner_id = request.query_params.get("partner_id", "").strip()
        if not partner_id:
            return lead_to(f"/backoffice/entities/{entity_id}")
        partner = (await context.names([partner_id])).get(partner_id)
        entity = await live.entity(entity_id)
        if entity is None:
            raise IdUnknown(entity_id)
        if partner is None or partner["status"] != "approved":
            return await entity_page(context, request, entity_id, partner_id, 400)
        access = await live.connection_list.access(partner_id, entity_id)
        return backoffice_page(
            request,
            "connect.html",
            entity=entity,
            partner=partner,
            access=access,
            ended_by=await _ended_by(live, partner_id, access),
        )

    @post("/connect", opt=STAFF)
    async def connect(request: AnyRequest, entity_id: PathText) -> Html:
        """Connect a business on the customer's behalf."""
        partner_id = form_of(request).get("partner_id", "")
        if await live.entity(entity_id) is None:
            raise IdUnknown(entity_id)
        await live.connections.connect_by_staff(entity_id, partner_id, staff_cause(request))
        return lead_to(f"/backoffice/entities/{entity_id}/handed/{partner_id}")

    @get("/handed/{partner_id:str}", opt=STAFF)
    async def handed(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Show the entity id, to pass on."""
        try:
            access = await live.connection_list.access(partner_id, entity_id)
        except Refusal:
            raise IdUnknown(entity_id) from None
        if not access.connected:
            return lead_to(f"/backoffice/entities/{entity_id}")
        partner = await context.partner_named(partner_id)
        return backoffice_page(request, "handed.html", entity=access, partner=partner)

    return Router(PATH, route_handlers=[confirm, connect, handed])


async def _ended_by(live: ModeContext, partner_id: str, access: Access) -> str:
    """Return who ended a connection, as its last event names them; empty where nobody did."""
    if access.disconnected_at is None:
        return ""
    stream = connection_stream("live", partner_id, access.entity_id)
    row = await live.database.fetchrow(_SQL.connection_event, stream, access.version)
    return stored_form(row["state"]).meta.actor if row else ""


def disconnecting_router(context: BackofficeContext) -> Router:
    """Return the router of ending connections, in either mode."""

    @get(opt=STAFF)
    async def confirm(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Explain what disconnecting means, and ask for confirmation."""
        _, entity = await context.entity(entity_id)
        partner = await context.partner_named(partner_id)
        return backoffice_page(request, "disconnect.html", entity=entity, partner=partner)

    @post(opt=STAFF)
    async def disconnect(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Disconnect a business on the customer's behalf."""
        mode, _ = await context.entity(entity_id)
        connections = context.modes[mode].connections
        await connections.disconnect(entity_id, partner_id, staff_cause(request))
        return lead_to(f"/backoffice/entities/{entity_id}")

    return Router(f"{PATH}/disconnect/{{partner_id:str}}", route_handlers=[confirm, disconnect])
