"""The contract's tables of request fields (2.1, 2.3 to 2.5), one row each, and complete bodies."""

from copy import deepcopy
from typing import Any, NamedTuple

import msgspec

from service.claims.wire import ClaimRequest
from service.connections.wire import ConnectRequest
from service.documents.paths import EXTENSIONS
from service.documents.wire import UploadRequest
from service.onboardings.wire import OnboardingRequest

WRONG = {
    "string": (1, "expected a string"),
    "string or null": (False, "expected a string"),
    "email": ("nobody", "not an email address"),
    "amount": ("1.5", "not an amount with two decimal places, such as 125.00"),
    "date": ("2026-02-30", "not a calendar date"),
    "timestamp": (
        "2026-01-31",
        "not an RFC 3339 timestamp with an offset, such as 2026-01-31T09:30:00Z",
    ),
    "boolean": ("true", "expected true or false"),
    "MIME type": ("text/html", f"expected one of {', '.join(sorted(EXTENSIONS))}"),
    "whole number": (1.5, "expected a whole number"),
    "object": ([], "expected an object"),
    "array": ({}, "expected an array"),
}
"""For each type of the tables: a value that is not of it, and what is said."""

STRINGS = {"string", "string or null", "MIME type", "email", "amount", "date", "timestamp"}
"""The types that are strings on the wire."""

BODIES: dict[type[msgspec.Struct], dict[str, Any]] = {
    OnboardingRequest: {
        "partner_user_id": "user-17",
        "company_name": "Example Trading Ltd",
        "user_email": "owner@example.com",
        "company_number": "00000000",
        "user_name": "The owner",
        "address": {
            "first_line": "1 Example Street",
            "second_line": "Unit 2",
            "locality": "London",
            "region": "Greater London",
            "postcode": "AB1 2CD",
            "country": "GB",
        },
    },
    ConnectRequest: {"partner_user_id": "user-17", "label": "Spring campaign"},
    UploadRequest: {
        "entity_id": "ent_1",
        "partner_claim_id": "case-1",
        "filename": "invoice.pdf",
        "mime_type": "application/pdf",
        "max_bytes": 1000,
    },
    ClaimRequest: {
        "entity_id": "ent_1",
        "partner_claim_id": "case-1001",
        "defendant": {
            "name": "Example Ltd",
            "email": "accounts@example.com",
            "address": {
                "first_line": "1 Example Street",
                "second_line": "Unit 2",
                "town_city": "London",
                "county": "Greater London",
                "postcode": "AB1 2CD",
                "country": "GB",
            },
            "is_consumer": False,
            "is_individual": False,
            "company_registration_number": "00000000",
        },
        "invoices": [
            {
                "number": "INV-1001",
                "total_amount_for_invoice": "1250.00",
                "created_date": "2026-01-05",
                "due_date": "2026-02-04",
                "summary": "Web design",
            }
        ],
        "partner_user_id": "user-17",
        "partner_invoice_ids": ["inv-1"],
        "message": "Please begin.",
        "contract_date": "2025-11-03T09:00:00.000Z",
        "is_written": True,
        "document_refs": [
            {"storage_path": "entities/a", "mime_type": "image/png", "filename": "a.png"}
        ],
    },
}
"""A complete body of each request."""


class Row(NamedTuple):
    """One row of a table: the field's path in the body, its type, and whether it is required."""

    request: type[msgspec.Struct]
    path: tuple[str | int, ...]
    type: str
    required: bool = False

    @property
    def where(self) -> str:
        """The path as messages name it, within the top-level field."""
        inner = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return inner[1 + len(str(self.path[0])) :].removeprefix(".")

    def errors(self, message: str) -> dict[str, list[str]]:
        """The `fieldErrors` of a single fault in this field."""
        return {str(self.path[0]): [f"{self.where}: {message}" if self.where else message]}


def _rows() -> list[Row]:
    onboarding, connect, claim = OnboardingRequest, ConnectRequest, ClaimRequest
    invoice, document = ("invoices", 0), ("document_refs", 0)
    lines = ("first_line", "postcode", "country")
    return [
        Row(onboarding, ("partner_user_id",), "string", True),
        Row(onboarding, ("company_name",), "string", True),
        Row(onboarding, ("user_email",), "email", True),
        Row(onboarding, ("company_number",), "string"),
        Row(onboarding, ("user_name",), "string"),
        Row(onboarding, ("address",), "object"),
        *(Row(onboarding, ("address", n), "string") for n in (*lines, "locality", "region")),
        Row(onboarding, ("address", "second_line"), "string or null"),
        Row(connect, ("partner_user_id",), "string", True),
        Row(connect, ("label",), "string"),
        *(Row(UploadRequest, (n,), "string", True) for n in ("entity_id", "partner_claim_id")),
        Row(UploadRequest, ("filename",), "string", True),
        Row(UploadRequest, ("mime_type",), "MIME type", True),
        Row(UploadRequest, ("max_bytes",), "whole number"),
        Row(claim, ("entity_id",), "string", True),
        Row(claim, ("partner_claim_id",), "string", True),
        Row(claim, ("defendant",), "object", True),
        Row(claim, ("invoices",), "array", True),
        Row(claim, ("partner_user_id",), "string"),
        Row(claim, ("partner_invoice_ids",), "array"),
        Row(claim, ("message",), "string"),
        Row(claim, ("contract_date",), "timestamp"),
        Row(claim, ("is_written",), "boolean"),
        Row(claim, ("document_refs",), "array"),
        *(Row(claim, (*document, n), "string", True) for n in ("storage_path", "mime_type")),
        Row(claim, (*document, "filename"), "string", True),
        Row(claim, ("defendant", "name"), "string", True),
        Row(claim, ("defendant", "email"), "email"),
        Row(claim, ("defendant", "address"), "object"),
        Row(claim, ("defendant", "is_consumer"), "boolean"),
        Row(claim, ("defendant", "is_individual"), "boolean"),
        Row(claim, ("defendant", "company_registration_number"), "string"),
        *(
            Row(claim, ("defendant", "address", n), "string")
            for n in (*lines, "town_city", "county")
        ),
        Row(claim, ("defendant", "address", "second_line"), "string or null"),
        Row(claim, (*invoice, "number"), "string"),
        Row(claim, (*invoice, "total_amount_for_invoice"), "amount"),
        Row(claim, (*invoice, "created_date"), "date"),
        Row(claim, (*invoice, "due_date"), "date"),
        Row(claim, (*invoice, "summary"), "string"),
    ]


def parent_of(body: Any, row: Row) -> Any:
    """Return the object of the body that has the row's field."""
    for step in row.path[:-1]:
        body = body[step]
    return body


ROWS = _rows()
"""The tables."""


def body_with(row: Row, value: object) -> dict[str, Any]:
    """Return a complete body with another value in a row's field."""
    body = deepcopy(BODIES[row.request])
    parent_of(body, row)[row.path[-1]] = value
    return body
