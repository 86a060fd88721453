"""The contract's table of errors (section 7), row by row, and our additions to it."""

import pytest

from service.core.errors import ERRORS, Refusal
from tests.tables import every_row

pytestmark = pytest.mark.in_process("compares tables, without HTTP")

CONTRACT = [
    (400, "validation_failed"),
    (400, "invalid_json"),
    (400, "body_required"),
    (400, "document_path_invalid"),
    (400, "document_not_uploaded"),
    (400, "connect_token_invalid"),
    (400, "connect_token_expired"),
    (401, "auth_missing"),
    (401, "auth_invalid_format"),
    (401, "auth_unknown_partner"),
    (401, "auth_revoked"),
    (401, "auth_bad_secret"),
    (403, "auth_partner_not_approved"),
    (403, "entity_not_owned"),
    (403, "partner_disconnected"),
    (404, "entity_not_found"),
    (409, "claim_conflict"),
    (409, "connect_token_already_redeemed"),
    (409, "entity_already_linked"),
    (422, "onboarding_unavailable"),
    (429, "rate_limited"),
    (500, "internal_error"),
    (503, "service_unavailable"),
    (503, "document_verification_failed"),
]

LABELS = {
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

RETRIED = {"rate_limited", "internal_error", "service_unavailable", "claim_conflict"} | {
    "document_verification_failed",
    "request_timeout",
}
"""The contract's rules for retries, and our 408, which says nothing was read to its end."""


def test_contract_codes_have_their_status():
    """Each code of the contract has its status and is not marked as ours."""
    found = {(ERRORS[code].status, code) for _, code in CONTRACT if not ERRORS[code].ours}
    assert found == set(CONTRACT)


def test_added_codes_are_marked_as_ours():
    """All codes outside the contract are marked."""
    ours = {code for code, row in ERRORS.items() if row.ours}
    assert ours == ERRORS.keys() - {code for _, code in CONTRACT}


def test_every_code_has_its_envelope_fields():
    """`error` is the reason phrase; only `validation_failed` has `details`."""
    with every_row() as row:
        for code in ERRORS:
            with row(code):
                envelope = Refusal(code).envelope()
                assert envelope["error"] == LABELS[ERRORS[code].status]
                assert envelope["message"] != ""
                extra = {"details"} if code == "validation_failed" else set()
                assert envelope.keys() == {"error", "code", "message"} | extra


def test_retry_advice_follows_the_contract():
    """Exactly the codes that the contract marks as retryable advise a retry."""
    assert {code for code, row in ERRORS.items() if row.retry.startswith("Retry")} == RETRIED


def test_an_internal_error_has_a_generic_message():
    """Its message reveals nothing of the cause."""
    assert ERRORS["internal_error"].message == "Internal error"
