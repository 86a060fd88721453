"""`POST /claims` and `GET /claims` (contract 4.4, 4.5)."""

from typing import Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from projections.claim_list.reader import PAGE_BYTES_MAX, ClaimPage
from service.claims.details import connection_state, list_item
from service.claims.wire import (
    ClaimDetail,
    ClaimInPath,
    ClaimList,
    ClaimListQuery,
    ClaimRequest,
    ClaimResponse,
)
from service.http.bodies import AnyRequest, caller_of, decoded, read_body
from service.http.decoding import decode_query
from service.http.responses import json_response, replay_headers
from service.http.scalars import given
from service.partner_api.endpoints import REPLAY_HEADERS, Endpoint, Modes, ResponseLink, Success

LIMIT_MAX = 200

_LISTED: Final = ResponseLink(
    "list_claims", "The claim is in its entity's list.", {"entity_id": "$request.body#/entity_id"}
)

CREATE_CLAIM: Final = Endpoint(
    id="create_claim",
    method="post",
    path="/claims",
    tag="Claims",
    summary="Create a claim",
    description=(
        "Creates a debt-recovery claim for an entity that is connected to you. `message` and "
        "`document_refs` become its first message, which starts automated processing.\n\n"
        "Idempotent on `partner_claim_id` within the entity, for ever: a repeat answers 200 "
        "with the original `claim_id`, a null `message_id` and no `document_ids`. Messages and "
        "documents are taken from the first call alone, so send everything in it. A repeat "
        "with another body changes nothing and says so: `Idempotent-Payload-Match: false`.\n\n"
        "Upload the files that `document_refs` name before this call, each with a URL of "
        "`POST /documents/upload-url` that was minted for the same `entity_id` and "
        "`partner_claim_id`. 400 `document_path_invalid`: a path is not under their prefix. 400 "
        "`document_not_uploaded`: no upload for this claim is there, or it is no longer. A "
        "`mime_type` that is not the upload's, or a path given twice, is `validation_failed`. 503 "
        "`document_verification_failed`: storage did not answer in time; nothing was recorded, "
        "so send the identical request again."
    ),
    body=ClaimRequest,
    successes=(
        Success(201, ClaimResponse, "A new claim.", links=(_LISTED,)),
        Success(
            200,
            ClaimResponse,
            "A replay: the claim that the first call made.",
            REPLAY_HEADERS,
            {"already_existed": True, "message_id": None, "document_ids": []},
            (_LISTED,),
        ),
    ),
    own_errors=(
        "document_path_invalid",
        "document_not_uploaded",
        "entity_not_owned",
        "partner_disconnected",
        "entity_not_found",
        "claim_conflict",
        "document_verification_failed",
    ),
)

LIST_CLAIMS: Final = Endpoint(
    id="list_claims",
    method="get",
    path="/claims",
    tag="Claims",
    summary="List an entity's claims",
    description=(
        "Lists the claims that you created for an entity, newest first. It goes on working "
        "after the entity has disconnected you, and then says so.\n\n"
        "Pass `next_page_token` as the next request's `page_token`, with the same `entity_id` "
        "and `partner_user_id`; null means that there are no more pages. Claims created while "
        "you page make no page skip or repeat a row. A token that is not the id of a claim of the "
        "list that you ask for is 400 `validation_failed`. A page may have fewer claims than "
        f"`limit`, and a next one, where their `partner_invoice_ids` would exceed {PAGE_BYTES_MAX} "
        "bytes."
    ),
    query=ClaimListQuery,
    successes=(Success(200, ClaimList, "A page of claims."),),
    own_errors=("validation_failed", "entity_not_owned", "entity_not_found"),
)


GET_CLAIM: Final = Endpoint(
    id="get_claim",
    method="get",
    path="/claims/{claim_id}",
    tag="Claims",
    ours=True,
    summary="Show a claim",
    description=(
        "Returns a claim of yours as the list has it, with the stages that it came to, its "
        "documents and the total of its invoices. It goes on working after the entity has "
        "disconnected you. 404 `claim_not_found`: no claim of yours in this mode has this id. What "
        "cannot be an id, such as nothing or one with a slash, makes another path: 404 `not_found`."
    ),
    in_path=ClaimInPath,
    successes=(Success(200, ClaimDetail, "The claim."),),
    own_errors=("claim_not_found",),
)


def claim_handlers(modes: Modes) -> list[HTTPRouteHandler]:
    """Return the handlers of `/claims`."""

    @CREATE_CLAIM.handler
    async def create_claim(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        body = await read_body(request)
        claim = decoded(request, body, ClaimRequest)
        outcome = await modes[caller.mode].claims.create(caller, claim, len(body))
        return json_response(
            ClaimResponse(
                claim_id=outcome.claim_id,
                message_id=outcome.message_id,
                document_ids=outcome.document_ids,
                already_existed=outcome.already_existed,
            ),
            200 if outcome.already_existed else 201,
            replay_headers(outcome.already_existed, outcome.matches),
        )

    @LIST_CLAIMS.handler
    async def list_claims(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        query = decode_query(request.scope["query_string"], ClaimListQuery)
        page = await modes[caller.mode].claim_list.page(
            caller.partner_id,
            query.entity_id,
            limit=max(1, min(query.limit, LIMIT_MAX)),
            page_token=given(query.page_token),
            partner_user_id=given(query.partner_user_id),
        )
        return json_response(_page(page))

    @GET_CLAIM.handler
    async def get_claim(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        claim_id: str = request.path_params["claim_id"]
        return json_response(await modes[caller.mode].details.of(caller.partner_id, claim_id))

    return [create_claim, list_claims, get_claim]


def _page(page: ClaimPage) -> ClaimList:
    state = connection_state(page.disconnected_at)
    return ClaimList(
        claims=[list_item(row, state) for row in page.claims],
        next_page_token=page.next_page_token,
        **state,
    )
