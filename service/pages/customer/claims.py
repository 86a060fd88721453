"""A customer's claims: those that a partner created, and each one with its history."""

from typing import Final

from litestar import get

from projections.claim_list.reader import ClaimListReader
from projections.connections.reader import ConnectionsReader
from service.claims.overview import ClaimOverviews
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.customer.account import (
    ACCOUNT,
    IsApproved,
    PartnerName,
    connection_of,
    customer_page,
)
from service.pages.site_map import Html, PathText

CLAIMS_SHOWN: Final = 25
ROWS_SHOWN: Final = 50
"""Invoices, documents and steps of a claim: more would be a page too heavy for a phone."""


def customer_claims_router(
    connections: ConnectionsReader,
    claims: ClaimListReader,
    cases: ClaimOverviews,
    partner_name: PartnerName,
    is_approved: IsApproved,
) -> OneOffRouter:
    """Return the router of a customer's claims (live mode: there is no other for customers)."""

    @get("/account/{entity_id:str}/{partner_id:str}", opt=ACCOUNT)
    async def partner(request: AnyRequest, entity_id: PathText, partner_id: PathText) -> Html:
        """Show one partner's connection to one business, and the claims it created."""
        entity, access = await connection_of(request, connections, entity_id, partner_id)
        listed, older = await claims.page_of_connection(
            partner_id,
            entity_id,
            limit=CLAIMS_SHOWN,
            after=request.query_params.get("from") or None,
        )
        overviews = await cases.listed([row["stream_id"] for row in listed], partner_id, entity_id)
        return customer_page(
            request,
            "partner.html",
            entity=entity,
            partner_id=partner_id,
            partner_name=await partner_name(partner_id),
            access=access,
            is_connected=access.connected and await is_approved(partner_id),
            claims=[(row, overviews.get(row["claim_id"])) for row in listed],
            next_page=older,
            is_first="from" not in request.query_params,
        )

    @get("/account/{entity_id:str}/{partner_id:str}/claims/{claim_id:str}", opt=ACCOUNT)
    async def claim(
        request: AnyRequest, entity_id: PathText, partner_id: PathText, claim_id: PathText
    ) -> Html:
        """Show a claim: who owes what, what has happened, and its documents."""
        entity, _ = await connection_of(request, connections, entity_id, partner_id)
        row = await claims.by_id(claim_id)
        if row is None or (row["entity_id"], row["partner_id"]) != (entity_id, partner_id):
            raise Refusal("claim_not_found")
        case = await cases.one(row)
        return customer_page(
            request,
            "claim.html",
            entity=entity,
            claim=row,
            case=case,
            history=case.history[-ROWS_SHOWN:][::-1],
            rows_shown=ROWS_SHOWN,
            partner_name=await partner_name(partner_id),
        )

    return OneOffRouter("/", route_handlers=[partner, claim])
