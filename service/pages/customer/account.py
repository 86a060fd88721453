"""`/account`: a person's businesses, the partners connected to them, and disconnecting.

`/connected` is what follows an approval: the entity id, to pass on.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from litestar import get, post

from projections.connections.reader import ConnectionsReader
from service.connections.commands import ConnectionCommands
from service.core.errors import Refusal
from service.entities.commands import EntityCommands
from service.facts.access import Access
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.pages.carried import forgotten
from service.pages.customer.connect import ProfileOf, entities_of, own_entity
from service.pages.customer.passing_on import ways
from service.pages.gate import customer_cause
from service.pages.proof import Proofs
from service.pages.shell import areas, framed_page, lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import expected_version, form_of, no_cookie, signed_in

ACCOUNT: Final = {"page": Page("signed-in", "account.title")}

PartnerName = Callable[[str], Awaitable[str]]
"""Returns a partner's name by its id, as its events have it."""
IsApproved = Callable[[str], Awaitable[bool]]
"""Returns whether a partner may act now, by its id: our team can have revoked its access."""


def account_router(
    commands: ConnectionCommands,
    connections: ConnectionsReader,
    businesses: EntityCommands,
    partner_name: PartnerName,
    is_approved: IsApproved,
    profile_of: ProfileOf,
    proofs: Proofs,
) -> OneOffRouter:
    """Return the router of a customer's account (live mode: there is no other for customers)."""

    @get("/connected/{entity_id:str}/{partner_id:str}", opt=ACCOUNT)
    async def connected(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Show the entity id, to pass on after an approval."""
        entity, access = await connection_of(request, connections, entity_id, partner_id)
        if not (access.connected and await is_approved(partner_id)):
            return lead_to(f"/account/{entity_id}/{partner_id}")
        partner = await profile_of(partner_id)
        return customer_page(
            request,
            "connected.html",
            entity=entity,
            partner_name=partner.name,
            ways=ways(entity_id, entity["name"], partner),
        )

    @get("/account", opt=ACCOUNT)
    async def account(request: AnyRequest) -> Html:
        """List the person's businesses, and who is connected."""
        entities = [
            {
                "entity": entity,
                "partners": [
                    {
                        "name": await partner_name(row["partner_id"]),
                        "is_connected": row["disconnected_at"] is None
                        and await is_approved(row["partner_id"]),
                        "row": row,
                    }
                    for row in await connections.connections(entity["entity_id"])
                ],
            }
            for entity in await entities_of(request, connections)
        ]
        saved = request.query_params.get("saved")
        return customer_page(request, "account.html", entities=entities, saved=saved)

    @get("/account/{entity_id:str}/{partner_id:str}/disconnect", opt=ACCOUNT)
    async def confirm(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Explain what disconnecting means, and ask for confirmation."""
        entity, access = await connection_of(request, connections, entity_id, partner_id)
        if not access.connected:
            return lead_to(f"/account/{entity_id}/{partner_id}")
        return customer_page(
            request,
            "disconnect.html",
            entity=entity,
            partner_id=partner_id,
            partner_name=await partner_name(partner_id),
            version=access.version,
        )

    @post("/account/{entity_id:str}/{partner_id:str}/disconnect", opt=ACCOUNT)
    async def disconnect(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Disconnect a partner."""
        await own_entity(request, connections, entity_id)
        cause = customer_cause(request, entity_id)
        await commands.disconnect(entity_id, partner_id, cause, expected_version(request))
        return lead_to(f"/account/{entity_id}/{partner_id}")

    @post("/account/mails", opt=ACCOUNT)
    async def mails(request: AnyRequest) -> Html:
        """Choose whether to be told by mail when a claim of a business moves on."""
        form = form_of(request)
        entity = await own_entity(request, connections, form.get("entity_id", ""))
        entity_id: str = entity["entity_id"]
        cause, wanted = customer_cause(request, entity_id), form.get("stage_mails") == "on"
        await businesses.choose_stage_mails(entity_id, cause, wanted=wanted)
        return lead_to(f"/account?saved={entity_id}")

    @post("/account/sign-out", opt=ACCOUNT)
    async def sign_out(request: AnyRequest) -> Html:
        """End every session of the person."""
        proofs.require_recent(request)
        await proofs.sessions.end_others(signed_in(request).person_id)
        return lead_to("/sign-in", [no_cookie(), *forgotten()])

    handlers = [connected, account, confirm, disconnect, mails, sign_out]
    return OneOffRouter("/", route_handlers=handlers)


def customer_page(request: AnyRequest, template: str, **context: object) -> Html:
    """Return a page of a customer's account, with the areas that they may have."""
    return framed_page(request, f"customer/{template}", 200, areas(request), **context)


async def connection_of(
    request: AnyRequest, connections: ConnectionsReader, entity_id: str, partner_id: str
) -> tuple[Row, Access]:
    """Return one of the person's businesses, and a partner's access to it, present or past."""
    entity = await own_entity(request, connections, entity_id)
    access = await connections.access(partner_id, entity_id)
    if not access.version:
        raise Refusal("entity_not_owned")
    return entity, access
