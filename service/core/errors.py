"""The one table of errors: code, HTTP status, meaning, retry advice (contract section 7).

The handlers, the OpenAPI document, the reference page and the CLI are derived from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

After = Literal["header", "backoff"]
"""When to retry: not before `Retry-After`, or by the client's own exponential backoff."""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row: clients branch on `code`; `message` is for people and may change."""

    code: str
    status: int
    message: str
    after: After | None
    """When the identical request may succeed; None: it is answered the same every time."""
    ours: bool
    """Whether the code is our addition, which the contract does not list (readings)."""

    @property
    def retry(self) -> str:
        """The advice in words."""
        return _ADVICE[self.after]

    @property
    def label(self) -> str:
        """The HTTP reason phrase, informational only (contract 2.8, `error`)."""
        return _LABELS[self.status]


_LABELS: Final[Mapping[int, str]] = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Request Entity Too Large",
    421: "Misdirected Request",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
"""Not `HTTPStatus.phrase`: Python 3.13 renamed 413 and 422, and answers do not change with it."""

_ADVICE: Final[Mapping[After | None, str]] = {
    None: "Do not retry unchanged.",
    "header": "Retry after as many seconds as Retry-After says, with exponential backoff and "
    "jitter.",
    "backoff": "Retry with exponential backoff and jitter.",
}
_AFTER: Final[Mapping[str, After]] = {"claim_conflict": "backoff"}
_AFTER_BY_STATUS: Final[Mapping[int, After]] = {
    408: "backoff",
    429: "header",
    500: "backoff",
    503: "header",
}

_CONTRACT: Final = (
    ("validation_failed", 400, "The request failed validation; see details."),
    ("invalid_json", 400, "The body is not valid JSON."),
    ("body_required", 400, "Send a JSON body with Content-Type: application/json (UTF-8)."),
    (
        "document_path_invalid",
        400,
        "A document path is not under this entity's and claim's prefix.",
    ),
    ("document_not_uploaded", 400, "No upload for this claim is at a referenced path."),
    ("connect_token_invalid", 400, "This connect link is not valid."),
    ("connect_token_expired", 400, "This connect link has expired; ask for a new one."),
    ("auth_missing", 401, "Send an Authorization header with your API key."),
    (
        "auth_invalid_format",
        401,
        "The API key is malformed; expected Bearer pk_live_<partner>.<key>.<secret>.",
    ),
    ("auth_unknown_partner", 401, "No partner has the id in this API key."),
    ("auth_revoked", 401, "This API key or its partner has been revoked."),
    ("auth_bad_secret", 401, "The key id or the secret of this API key is wrong."),
    ("auth_partner_not_approved", 403, "This partner has not been approved by the service's team."),
    ("entity_not_owned", 403, "Your account has no connection to this entity."),
    ("partner_disconnected", 403, "This entity has disconnected your account."),
    ("entity_not_found", 404, "No such entity."),
    ("claim_conflict", 409, "The generated claim id was taken; send the identical request again."),
    ("connect_token_already_redeemed", 409, "This connect link has already been used."),
    ("entity_already_linked", 409, "This entity is already connected to the partner."),
    (
        "onboarding_unavailable",
        422,
        "Automatic onboarding cannot complete for these details; use POST /connect-requests.",
    ),
    ("rate_limited", 429, "Too many requests."),
    ("internal_error", 500, "Internal error"),
    ("service_unavailable", 503, "A dependency is briefly unavailable."),
    (
        "document_verification_failed",
        503,
        "The storage check of a document failed; nothing was recorded.",
    ),
)
_OURS: Final = (
    ("not_found", 404, "No such path."),
    ("method_not_allowed", 405, "This path does not support this method."),
    ("host_unknown", 421, "This service does not answer under this host name."),
    ("request_timeout", 408, "The body did not arrive in time."),
    ("payload_too_large", 413, "The body is larger than 1 MiB."),
    ("partner_not_found", 404, "No such partner."),
    ("entity_state", 409, "The business's state does not allow this."),
    ("partner_state", 409, "The partner's status does not allow this."),
    ("endpoint_not_found", 404, "No such webhook endpoint."),
    ("key_not_found", 404, "No such API key."),
    ("claim_not_found", 404, "No such claim."),
    ("onboarding_not_found", 404, "No such onboarding."),
    ("magic_link_invalid", 400, "This onboarding link is not valid."),
    ("magic_link_expired", 400, "This onboarding link has expired."),
    ("magic_link_already_used", 409, "This onboarding link has already been used."),
    ("onboarding_needs_sign_in", 403, "Sign in with the email address that was onboarded."),
    ("sign_in_link_invalid", 400, "This sign-in link is not valid."),
    ("sign_in_link_expired", 400, "This sign-in link has expired."),
    ("sign_in_link_used", 409, "This sign-in link has already been used."),
    ("cross_site_request", 403, "This form was sent from another site."),
    ("session_changed", 409, "You have signed in since this form was opened."),
    ("not_staff", 403, "This page is for the service's team."),
    ("passkey_refused", 400, "This passkey was not accepted."),
    ("own_recovery", 409, "Somebody else on the team has to remove your passkeys."),
    ("not_member", 403, "This page is for the members of a partner's team."),
    ("key_state", 409, "The API key's state does not allow this."),
    ("member_not_found", 404, "No such member of the partner's team."),
    ("last_member", 409, "The last member of a team cannot be removed."),
    (
        "applicant_stays",
        409,
        "Whoever applied stays on the team until the application is reviewed.",
    ),
    ("limit_reached", 409, "The limit for these has been reached."),
    ("application_pending", 409, "You already have an application under review."),
    ("request_not_found", 404, "No such call in the last thirty days."),
    ("sandbox_entity_not_found", 404, "No such entity in this partner's sandbox."),
    ("staff_not_found", 404, "No such address on the team."),
    ("reference_used", 409, "This reference has been used for something else."),
    ("staff_present", 409, "This address is on the team; remove it first."),
    ("link_not_found", 404, "No such connect link."),
    ("form_outdated", 409, "The connection has changed since you looked at it; look again."),
)

ERRORS: Final[Mapping[str, ErrorCode]] = {
    code: ErrorCode(code, status, message, _AFTER.get(code) or _AFTER_BY_STATUS.get(status), ours)
    for rows, ours in ((_CONTRACT, False), (_OURS, True))
    for code, status, message in rows
}
"""Every code that the service returns, in the order of the contract's table."""


class Faults(NamedTuple):
    """What is wrong with a request: messages by field, and those about the whole body."""

    fields: Mapping[str, Sequence[str]]
    form: Sequence[str]


class Refusal(Exception):
    """A request was refused with a code of the table, and nothing was written."""

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        field_errors: Mapping[str, Sequence[str]] | None = None,
        form_errors: Sequence[str] = (),
        retry_after_seconds: int | None = None,
        counted_as: str | None = None,
    ) -> None:
        """Set `field_errors` and `form_errors` only for `validation_failed`.

        `counted_as` is the code in metrics, by which alerts are told, where it is another.
        """
        self.row = ERRORS[code]
        self.counted_as = counted_as or code
        self.message = message or self.row.message
        self.field_errors = field_errors
        self.form_errors = form_errors
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{code}: {self.message}")

    @property
    def code(self) -> str:
        """The stable code that clients branch on."""
        return self.row.code

    @property
    def faults(self) -> Faults:
        """What is wrong, of `validation_failed`."""
        return Faults(self.field_errors or {}, self.form_errors)

    def envelope(self) -> dict[str, object]:
        """Return the error envelope (contract 2.8)."""
        body: dict[str, object] = {
            "error": self.row.label,
            "code": self.code,
            "message": self.message,
        }
        if self.code == "validation_failed":
            body["details"] = {
                "formErrors": list(self.faults.form),
                "fieldErrors": {
                    name: list(messages) for name, messages in self.faults.fields.items()
                },
            }
        return body


def busy(message: str | None = None) -> Refusal:
    """Return the refusal of what waits for a place in this process, and not for PostgreSQL."""
    return Refusal("service_unavailable", message, counted_as="busy")


def invalid(field: str, message: str) -> Refusal:
    """Return a `validation_failed` refusal that names a single field."""
    return Refusal("validation_failed", field_errors={field: [message]})


class PartnerUnapproved(Refusal):
    """A link that exists was refused because its partner is not approved any more."""
