"""`POST /claims` and `GET /claims` (contract 4.4, 4.5)."""

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Response, Router, get, post

from projections.claim_list.reader import ClaimListReader, ClaimPage
from service.claims.commands import ClaimCommands
from service.claims.wire import (
    ClaimList,
    ClaimListItem,
    ClaimListQuery,
    ClaimRequest,
    ClaimResponse,
)
from service.core.clock import timestamp
from service.facts.caller import Mode
from service.http.answers import json_answer, replay_headers
from service.http.bodies import AnyRequest, caller_of, read_body
from service.http.decoding import decode, decode_query
from service.http.scalars import given
from service.ledger.database import Row

LIMIT_MAX = 200


def claims_router(
    commands: Mapping[Mode, ClaimCommands], readers: Mapping[Mode, ClaimListReader]
) -> Router:
    """Return the router of `/claims`; each mode has commands and a reader of its own ledger."""

    @post("/claims", opt={"endpoint": "create_claim"})
    async def create_claim(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        body = await read_body(request)
        claim = decode(body, request.headers.get("content-type"), ClaimRequest)
        outcome = await commands[caller.mode].create(caller, claim)
        return json_answer(
            ClaimResponse(
                claim_id=outcome.claim_id,
                message_id=outcome.message_id,
                document_ids=outcome.document_ids,
                already_existed=outcome.already_existed,
            ),
            200 if outcome.already_existed else 201,
            replay_headers(outcome.already_existed, outcome.matches),
        )

    @get("/claims", opt={"endpoint": "list_claims"})
    async def list_claims(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        query = decode_query(request.scope["query_string"], ClaimListQuery)
        page = await readers[caller.mode].page(
            caller.partner_id,
            query.entity_id,
            limit=max(1, min(query.limit, LIMIT_MAX)),
            page_token=given(query.page_token),
            partner_user_id=given(query.partner_user_id),
        )
        return json_answer(_page(page))

    return Router("/", route_handlers=[create_claim, list_claims])


def _page(page: ClaimPage) -> ClaimList:
    disconnected_at = None if page.disconnected_at is None else timestamp(page.disconnected_at)
    state: dict[str, Any] = {
        "entity_disconnected": disconnected_at is not None,
        "entity_disconnected_at": disconnected_at,
    }
    return ClaimList(
        claims=[_item(row, state) for row in page.claims],
        next_page_token=page.next_page_token,
        **state,
    )


def _item(row: Row, state: Mapping[str, Any]) -> ClaimListItem:
    """Return a claim of the list: each field is the column of its name."""
    encoded = {
        "partner_invoice_ids": msgspec.json.decode(row["partner_invoice_ids"]),
        "created_at": timestamp(row["created_at"]),
    }
    return msgspec.convert({**row, **encoded, **state}, ClaimListItem)
