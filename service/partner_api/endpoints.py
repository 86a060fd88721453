"""The one table of partner endpoints: what each takes, what it answers, which errors it can give.

The OpenAPI document and the reference page are made from it; a test compares it with the routes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from service.claims.wire import ClaimList, ClaimListQuery, ClaimRequest, ClaimResponse
from service.connections.wire import ConnectRequest, ConnectResponse
from service.documents.wire import UploadRequest, UploadResponse
from service.onboardings.wire import OnboardingRequest, OnboardingResponse

WireType = type[msgspec.Struct]

AUTHENTICATION: Final = (
    "auth_missing",
    "auth_invalid_format",
    "auth_unknown_partner",
    "auth_revoked",
    "auth_bad_secret",
    "auth_partner_not_approved",
)
EVERYWHERE: Final = (*AUTHENTICATION, "rate_limited", "internal_error", "service_unavailable")
"""Codes that every endpoint can give."""
WITH_BODY: Final = (
    "validation_failed",
    "invalid_json",
    "body_required",
    "request_timeout",
    "payload_too_large",
)
"""Codes that every endpoint with a body can give besides."""
ANY_PATH: Final = ("not_found", "method_not_allowed")
"""Codes of requests that reach no endpoint."""

REPLAY_HEADERS: Final = {"Idempotent-Replayed": True, "Idempotent-Payload-Match": False}
"""Headers of a replay; True: always there. The match is absent once the data was erased."""


@dataclass(frozen=True, slots=True)
class Success:
    """An answer that is no error. `changes` makes its example differ from the fields' own."""

    status: int
    type: WireType
    description: str
    headers: Mapping[str, bool] = field(default_factory=dict[str, bool])
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation; `id` is what its handler carries as `opt["endpoint"]`."""

    id: str
    method: Literal["get", "post"]
    path: str
    summary: str
    description: str
    successes: Sequence[Success]
    own_errors: Sequence[str] = ()
    body: WireType | None = None
    query: WireType | None = None

    @property
    def errors(self) -> tuple[str, ...]:
        """Every code of the error table that it can give."""
        return (*(WITH_BODY if self.body else ()), *self.own_errors, *EVERYWHERE)


_NO_STORE: Final = {"Cache-Control": True}
_CLAIM_REPLAY: Final = {"already_existed": True, "message_id": None, "document_ids": []}

ENDPOINTS: Final = (
    Endpoint(
        id="start_onboarding",
        method="post",
        path="/onboardings",
        summary="Onboard a business that is new to the service",
        description=(
            "Registers the business and mails its user a magic link with which to finish. When the "
            "user has finished, the entity is connected to you; its `entity_id` reaches you through"
            " the customer, never through this API.\n\n"
            "Idempotent on `partner_user_id`, for ever: a repeat answers 200 with the original "
            "`onboarding_id`, mails nothing, and has no link. For a fresh link, onboard under a new"
            " `partner_user_id`.\n\n"
            "422 `onboarding_unavailable`: the e-mail address (whatever its case) or the company "
            "number (whatever its spaces and case) belongs to a business that already uses the "
            "service. Send it a connect link instead: `POST /connect-requests`. An onboarding that "
            "was never finished blocks nobody.\n\n"
            "In test mode nothing is mailed, the entity is connected at once, and the link, if you "
            "have asked for links in answers, is a placeholder."
        ),
        body=OnboardingRequest,
        successes=(
            Success(201, OnboardingResponse, "A new onboarding.", _NO_STORE),
            Success(
                200,
                OnboardingResponse,
                "A replay: the onboarding that the first call made.",
                _NO_STORE | REPLAY_HEADERS,
                {"already_existed": True, "magic_link_url": None},
            ),
        ),
        own_errors=("partner_disconnected", "onboarding_unavailable"),
    ),
    Endpoint(
        id="request_connection",
        method="post",
        path="/connect-requests",
        summary="Ask a business that uses the service to connect",
        description=(
            "Mints a single-use link. Deliver it to your customer yourself; whoever is signed in "
            "for the business opens it and approves, and the entity is connected to you. The link "
            "is a credential: it works for one hour, and is kept nowhere in the clear.\n\n"
            "Not idempotent: each call mints a fresh link, and earlier ones go on working until "
            "they are used or expire.\n\n"
            "In test mode the link is the same each time for one `partner_user_id`, cannot be "
            "redeemed, and `expires_at` is null."
        ),
        body=ConnectRequest,
        successes=(Success(201, ConnectResponse, "A fresh link.", _NO_STORE),),
    ),
    Endpoint(
        id="mint_upload_url",
        method="post",
        path="/documents/upload-url",
        summary="Get a URL to upload a document to",
        description=(
            "Answers a URL that takes one `PUT` of a file's bytes, straight to object storage, "
            "within 15 minutes. Send exactly the headers of `required_headers`, and no API key: "
            "the URL is a credential. Then name `storage_path` in the `document_refs` of "
            "`POST /claims`, with the same `entity_id` and `partner_claim_id`.\n\n"
            "Storage answers in XML; read its `<Code>` alone. Opened in a browser the URL answers "
            "`MalformedSecurityHeader`, as it should. A URL stores a file once: when the answer to "
            "a `PUT` was lost and the repeat is refused, mint again and upload anew; uploads that "
            "no claim names are removed in time.\n\n"
            "Not idempotent: each call mints a fresh path. In test mode documents lie apart from "
            "those of live mode."
        ),
        body=UploadRequest,
        successes=(Success(201, UploadResponse, "A fresh URL.", _NO_STORE),),
        own_errors=("entity_not_owned", "partner_disconnected", "entity_not_found"),
    ),
    Endpoint(
        id="create_claim",
        method="post",
        path="/claims",
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
            "`partner_claim_id`. 400 `document_path_invalid`: a path was not minted so. 400 "
            "`document_not_uploaded`: nothing is there yet. A `mime_type` that is not the "
            "upload's, or a path given twice, is `validation_failed`. 503 "
            "`document_verification_failed`: storage did not answer in time; nothing was recorded, "
            "so send the identical request again."
        ),
        body=ClaimRequest,
        successes=(
            Success(201, ClaimResponse, "A new claim."),
            Success(
                200,
                ClaimResponse,
                "A replay: the claim that the first call made.",
                REPLAY_HEADERS,
                _CLAIM_REPLAY,
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
    ),
    Endpoint(
        id="list_claims",
        method="get",
        path="/claims",
        summary="List an entity's claims",
        description=(
            "Lists the claims that you created for an entity, newest first. It goes on working "
            "after the entity has disconnected you, and then says so.\n\n"
            "Pass `next_page_token` as the next request's `page_token`, with the same `entity_id` "
            "and `partner_user_id`; null means that there are no more pages. Claims created while "
            "you page make no page skip or repeat a row. A token that this list did not give is "
            "400 `validation_failed`."
        ),
        query=ClaimListQuery,
        successes=(Success(200, ClaimList, "A page of claims."),),
        own_errors=("validation_failed", "entity_not_owned", "entity_not_found"),
    ),
)
"""Every endpoint behind the gate."""

BY_ID: Final = {endpoint.id: endpoint for endpoint in ENDPOINTS}


def endpoints_of(code: str) -> list[Endpoint]:
    """Return the endpoints that can give an error code."""
    return [endpoint for endpoint in ENDPOINTS if code in endpoint.errors]
