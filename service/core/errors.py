"""The one table of errors: code, HTTP status, meaning, retry advice (contract section 7).

The handlers, the OpenAPI document, the reference page and the CLI are made from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row: clients branch on `code`; `message` is for people and may change."""

    code: str
    status: int
    message: str
    retry: str = "Do not retry unchanged."
    ours: bool = False
    """True for codes that the contract does not list (readings: our additions)."""

    @property
    def label(self) -> str:
        """The HTTP reason phrase, informational only (contract 2.8, `error`)."""
        return HTTPStatus(self.status).phrase


_AFTER = "Retry after as many seconds as Retry-After says, with exponential backoff and jitter."
_BACKOFF = "Retry with exponential backoff and jitter."

_ROWS: Final = (
    ErrorCode("validation_failed", 400, "The request failed validation; see details."),
    ErrorCode("invalid_json", 400, "The body is not valid JSON."),
    ErrorCode(
        "body_required", 400, "Send a JSON body with Content-Type: application/json (UTF-8)."
    ),
    ErrorCode(
        "document_path_invalid",
        400,
        "A document path is not under this entity's and claim's prefix.",
    ),
    ErrorCode("document_not_uploaded", 400, "A referenced document is not in storage yet."),
    ErrorCode("connect_token_invalid", 400, "This connect link is not valid."),
    ErrorCode("connect_token_expired", 400, "This connect link has expired; ask for a new one."),
    ErrorCode("auth_missing", 401, "Send an Authorization header with your API key."),
    ErrorCode(
        "auth_invalid_format",
        401,
        "The API key is malformed; expected Bearer pk_live_<partner>.<key>.<secret>.",
    ),
    ErrorCode("auth_unknown_partner", 401, "No partner has the id in this API key."),
    ErrorCode("auth_revoked", 401, "This API key or its partner has been revoked."),
    ErrorCode("auth_bad_secret", 401, "The key id or the secret of this API key is wrong."),
    ErrorCode(
        "auth_partner_not_approved",
        403,
        "This partner has not been approved by the service's team.",
    ),
    ErrorCode("entity_not_owned", 403, "Your account has no connection to this entity."),
    ErrorCode("partner_disconnected", 403, "This entity has disconnected your account."),
    ErrorCode("entity_not_found", 404, "No such entity."),
    ErrorCode(
        "claim_conflict",
        409,
        "The generated claim id was taken; send the identical request again.",
        retry=_BACKOFF,
    ),
    ErrorCode("connect_token_already_redeemed", 409, "This connect link has already been used."),
    ErrorCode("entity_already_linked", 409, "This entity is already connected to the partner."),
    ErrorCode(
        "onboarding_unavailable",
        422,
        "Automatic onboarding cannot complete for these details; use POST /connect-requests.",
    ),
    ErrorCode("rate_limited", 429, "Too many requests.", retry=_AFTER),
    ErrorCode("internal_error", 500, "Internal error", retry=_BACKOFF),
    ErrorCode("service_unavailable", 503, "A dependency is briefly unavailable.", retry=_AFTER),
    ErrorCode(
        "document_verification_failed",
        503,
        "The storage check of a document failed; nothing was recorded.",
        retry=_AFTER,
    ),
    ErrorCode("not_found", 404, "No such path.", ours=True),
    ErrorCode("method_not_allowed", 405, "This path does not take this method.", ours=True),
    ErrorCode(
        "request_timeout", 408, "The body did not arrive in time.", retry=_BACKOFF, ours=True
    ),
    ErrorCode("payload_too_large", 413, "The body is larger than 1 MiB.", ours=True),
    ErrorCode("partner_not_found", 404, "No such partner.", ours=True),
    ErrorCode("entity_state", 409, "The business's state does not allow this.", ours=True),
    ErrorCode("partner_state", 409, "The partner's status does not allow this.", ours=True),
    ErrorCode("key_not_found", 404, "No such API key.", ours=True),
    ErrorCode("claim_not_found", 404, "No such claim.", ours=True),
    ErrorCode("onboarding_not_found", 404, "No such onboarding.", ours=True),
    ErrorCode("magic_link_invalid", 400, "This onboarding link is not valid.", ours=True),
    ErrorCode("magic_link_expired", 400, "This onboarding link has expired.", ours=True),
    ErrorCode("magic_link_already_used", 409, "This onboarding link was already used.", ours=True),
    ErrorCode("sign_in_link_invalid", 400, "This sign-in link is not valid.", ours=True),
    ErrorCode("sign_in_link_expired", 400, "This sign-in link has expired.", ours=True),
    ErrorCode("sign_in_link_used", 409, "This sign-in link was already used.", ours=True),
    ErrorCode("cross_site_request", 403, "This form was sent from another site.", ours=True),
    ErrorCode("not_staff", 403, "This page is for the service's team.", ours=True),
    ErrorCode("not_member", 403, "This page is for the members of a partner's team.", ours=True),
    ErrorCode("key_state", 409, "The API key's state does not allow this.", ours=True),
    ErrorCode("member_not_found", 404, "No such member of the partner's team.", ours=True),
    ErrorCode("last_member", 409, "The last member of a team cannot be removed.", ours=True),
    ErrorCode("limit_reached", 409, "There can be no more of these.", ours=True),
    ErrorCode("application_pending", 409, "An application of yours is being reviewed.", ours=True),
    ErrorCode("request_not_found", 404, "No such call of the last thirty days.", ours=True),
    ErrorCode(
        "sandbox_entity_not_found", 404, "No such entity in this partner's sandbox.", ours=True
    ),
    ErrorCode("staff_not_found", 404, "No such address in the team.", ours=True),
)

ERRORS: Final[Mapping[str, ErrorCode]] = {row.code: row for row in _ROWS}
"""Every code that the service answers with, in the order of the contract's table."""


class Refusal(Exception):
    """A request is refused with a code of the table; nothing was written."""

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        field_errors: Mapping[str, Sequence[str]] | None = None,
        form_errors: Sequence[str] = (),
        retry_after_seconds: int | None = None,
    ) -> None:
        """Name the code; `field_errors` and `form_errors` go with `validation_failed` alone."""
        self.row = ERRORS[code]
        self.message = message or self.row.message
        self.field_errors = field_errors
        self.form_errors = form_errors
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{code}: {self.message}")

    @property
    def code(self) -> str:
        """The stable code that clients branch on."""
        return self.row.code

    def envelope(self) -> dict[str, object]:
        """Return the error envelope (contract 2.8)."""
        body: dict[str, object] = {
            "error": self.row.label,
            "code": self.code,
            "message": self.message,
        }
        if self.code == "validation_failed":
            body["details"] = {
                "formErrors": list(self.form_errors),
                "fieldErrors": {
                    name: list(messages) for name, messages in (self.field_errors or {}).items()
                },
            }
        return body


def invalid(field: str, message: str) -> Refusal:
    """Return the refusal of a single field."""
    return Refusal("validation_failed", field_errors={field: [message]})
