"""`/backoffice/entities/<id>`: a business, and everything that belongs to it."""

from typing import Final

from litestar import Response, Router, get
from litestar.params import FromPath

from service.http.bodies import AnyRequest
from service.pages.backoffice.frame import BackofficeContext, staff_of

PATH: Final = "/backoffice/entities/{entity_id:str}"
APPEND_ID_MAX: Final = 2**63 - 1


def entities_router(desk: BackofficeContext) -> Router:
    """Return the router of looking at businesses."""

    @get(PATH, opt={"page": "staff"})
    async def one(request: AnyRequest, entity_id: FromPath[str]) -> Response[bytes]:
        await staff_of(request, desk.staff)
        return await entity_page(desk, request, entity_id)

    return Router("/", route_handlers=[one])


async def entity_page(
    desk: BackofficeContext,
    request: AnyRequest,
    entity_id: str,
    refused_partner: str | None = None,
    status: int = 200,
) -> Response[bytes]:
    """Return one business's page; `refused_partner` is an id that it cannot be handed to."""
    found = await desk.entity(entity_id)
    if found is None:
        return desk.unknown(request, entity_id)
    mode, entity = found
    side = desk.sides[mode]
    connections = await side.connection_list.connections(entity_id)
    onboardings = await side.look_up.onboardings(entity_id)
    claims, next_page = await side.look_up.claims(entity_id, _before(request))
    partner_ids = {row["partner_id"] for row in (*connections, *onboardings, *claims)}
    return desk.page(
        request,
        "",
        "entity.html",
        status,
        entity=entity,
        mode=mode,
        connections=connections,
        onboardings=onboardings,
        claims=claims,
        next_page=next_page,
        names=await desk.accounts.names(partner_ids),
        refused_partner=refused_partner,
    )


def _before(request: AnyRequest) -> int | None:
    """Return where a page of claims begins; anything that is no such place is the beginning."""
    text = request.query_params.get("before", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(APPEND_ID_MAX))
    return min(int(text), APPEND_ID_MAX) if is_number else None
