"""`/backoffice/entities/<id>`: a business, and everything that belongs to it."""

from typing import Final

from litestar import Response, Router, get
from litestar.params import FromPath

from service.http.bodies import AnyRequest
from service.pages.backoffice.frame import STAFF, BackofficeContext, backoffice_page

PATH: Final = "/entities/{entity_id:str}"
APPEND_ID_MAX: Final = 2**63 - 1


def entities_router(context: BackofficeContext) -> Router:
    """Return the router of looking at businesses."""

    @get(PATH, opt=STAFF)
    async def entity(request: AnyRequest, entity_id: FromPath[str]) -> Response[bytes]:
        """Show a business, its connections, onboardings and claims."""
        return await entity_page(context, request, entity_id)

    return Router("/", route_handlers=[entity])


async def entity_page(
    context: BackofficeContext,
    request: AnyRequest,
    entity_id: str,
    refused_partner: str | None = None,
    status: int = 200,
) -> Response[bytes]:
    """Return one business's page; `refused_partner` is an id that it cannot be handed to."""
    mode, entity = await context.entity(entity_id)
    of_mode = context.modes[mode]
    connections = await of_mode.connection_list.connections(entity_id)
    onboardings = await of_mode.look_up.onboardings(entity_id)
    claims, next_page = await of_mode.look_up.claims(entity_id, _before(request))
    partner_ids = {row["partner_id"] for row in (*connections, *onboardings, *claims)}
    return backoffice_page(
        request,
        "entity.html",
        status,
        entity=entity,
        mode=mode,
        connections=connections,
        onboardings=onboardings,
        claims=claims,
        next_page=next_page,
        names=await context.accounts.names(partner_ids),
        refused_partner=refused_partner,
    )


def _before(request: AnyRequest) -> int | None:
    """Return where a page of claims begins; anything that is no such place is the beginning."""
    text = request.query_params.get("before", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(APPEND_ID_MAX))
    return min(int(text), APPEND_ID_MAX) if is_number else None
