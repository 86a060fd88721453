"""`/backoffice/entities/<id>`: a business, all that belongs to it, and who is connected to it."""

from typing import Final

from litestar import get, post

from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.sql import queries
from service.pages.backoffice.frame import (
    STAFF,
    BackofficeContext,
    IdUnknown,
    backoffice_page,
    ledger_place,
)
from service.pages.gate import staff_cause
from service.pages.proof import Proofs
from service.pages.shell import lead_to
from service.pages.site_map import Html, PathText
from service.pages.visit import expected_version, form_of

APPEND_ID_MAX: Final = 2**63 - 1
PAGE: Final = 50

_PATH: Final = "/entities/{entity_id:str}"

_SQL = queries("service.pages.backoffice")


def entities_router(context: BackofficeContext, proofs: Proofs) -> OneOffRouter:
    """Return the router of looking at businesses and of ending their connections."""

    @get(opt=STAFF)
    async def entity(request: AnyRequest, entity_id: PathText) -> Html:
        """Show a business, its connections, onboardings and claims."""
        return await _entity_page(context, request, entity_id)

    @get("/disconnect/{partner_id:str}", opt=STAFF)
    async def confirm(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Explain what disconnecting means, and ask for confirmation."""
        mode, entity = await context.entity(entity_id)
        partner = await context.partner_named(partner_id)
        access = await context.modes[mode].connection_list.access(partner_id, entity_id)
        version = access.version
        return backoffice_page(
            request, "disconnect.html", entity=entity, partner=partner, version=version
        )

    @post("/disconnect/{partner_id:str}", opt=STAFF)
    async def disconnect(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Disconnect a business on the customer's behalf."""
        await proofs.require(request)
        mode, _ = await context.entity(entity_id)
        await context.modes[mode].connections.disconnect(
            entity_id, partner_id, staff_cause(request), expected_version(request)
        )
        return lead_to(f"/backoffice/entities/{entity_id}")

    return OneOffRouter(_PATH, route_handlers=[entity, confirm, disconnect])


def connecting_router(context: BackofficeContext, proofs: Proofs) -> OneOffRouter:
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
            return await _entity_page(context, request, entity_id, partner_id, 400)
        access = await live.connection_list.access(partner_id, entity_id)
        return backoffice_page(
            request,
            "connect.html",
            entity=entity,
            partner=partner,
            access=access,
        )

    @post("/connect", opt=STAFF)
    async def connect(request: AnyRequest, entity_id: PathText) -> Html:
        """Connect a business on the customer's behalf."""
        await proofs.require(request)
        partner_id = form_of(request).get("partner_id", "")
        if await live.entity(entity_id) is None:
            raise IdUnknown(entity_id)
        await live.connections.connect_by_staff(
            entity_id, partner_id, staff_cause(request), expected_version(request)
        )
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

    return OneOffRouter(_PATH, route_handlers=[confirm, connect, handed])


async def _entity_page(
    context: BackofficeContext,
    request: AnyRequest,
    entity_id: str,
    refused_partner: str | None = None,
    status: int = 200,
) -> Html:
    """Return one business's page; `refused_partner` is an id that it cannot be handed to."""
    mode, entity = await context.entity(entity_id)
    of_mode = context.modes[mode]
    connections = await of_mode.connection_list.connections(entity_id)
    onboardings = await of_mode.database.reads.fetch(_SQL.entity_onboardings, entity_id)
    before = ledger_place(request.query_params.get("before", ""), APPEND_ID_MAX)
    claims = await of_mode.database.reads.fetch(_SQL.entity_claims, entity_id, before, PAGE + 1)
    next_page = claims[PAGE - 1]["append_id"] if len(claims) > PAGE else None
    partner_ids = {row["partner_id"] for row in (*connections, *onboardings, *claims[:PAGE])}
    return backoffice_page(
        request,
        "entity.html",
        status,
        entity=entity,
        mode=mode,
        connections=connections,
        onboardings=onboardings,
        claims=claims[:PAGE],
        next_page=next_page,
        names=await context.names(partner_ids),
        refused_partner=refused_partner,
    )
