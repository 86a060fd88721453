"""A good body of a claim, and what altered ones are refused with."""

import json
from typing import Any

import pytest

from service.claims.wire import ClaimRequest
from service.core.errors import Refusal
from service.http.decoding import decode

JSON = "application/json"

GOOD: dict[str, Any] = {
    "entity_id": "ent_1",
    "partner_claim_id": "case-1",
    "defendant": {"name": "Example Ltd"},
    "invoices": [{}],
}


def body_with(**fields: object) -> bytes:
    """Return the good body with some fields set."""
    return json.dumps(GOOD | fields).encode()


def refusal(body: bytes, content_type: str | None = JSON, type_: Any = ClaimRequest) -> Refusal:
    """Return what a body is refused with."""
    with pytest.raises(Refusal) as refused:
        decode(body, content_type, type_)
    return refused.value
