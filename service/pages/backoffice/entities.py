"""`/backoffice/entities/<id>`: a business, and everything that belongs to it."""

from typing import Final

from litestar import Router, get

from service.http.bodies import AnyRequest
from service.ledger.sql import queries
from service.pages.backoffice.frame import STAFF, BackofficeContext, backoffice_page, ledger_place
from service.pages.site_map import Html, PathText

PATH: Final = "/entities/{entity_id:str}"
APPEND_ID_MAX: Final = 2**63 - 1
PAGE: Final = 50

_SQL = queries("service.pages.backoffice")


def entities_router(context: BackofficeContext) -> Router:
    """Return the router of looking at businesses."""

    @get(PATH, opt=STAFF)
    async def entity(request: AnyRequest, entity_id: PathText) -> Html:
        """Show a business, its connections, onboardings and claims."""
        return await entity_page(context, request, entity_id)

    return Router("/", route_handlers=[entity])


async def entity_page(
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
    onboardings = await of_mode.database.fetch(_SQL.entity_onboardings, entity_id)
    before = ledger_place(request.query_params.get("before", ""), APPEND_ID_MAX)
    claims = await of_mode.database.fetch(_SQL.entity_claims, entity_id, before, PAGE + 1)
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
