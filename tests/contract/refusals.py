"""The form of every refusal (contract 2.8)."""

from typing import Any

import httpx

from service.core.errors import ERRORS


def refused(answer: httpx.Response, code: str) -> dict[str, Any]:
    """Check an answer against the envelope of a code; return its body."""
    body = answer.json()
    row = ERRORS[code]
    assert (answer.status_code, body.get("code")) == (row.status, code), answer.text[:500]
    details = ["details"] if code == "validation_failed" else []
    assert list(body) == ["error", "code", "message", *details]
    assert body["error"] == row.label
    assert body["message"]
    if details:
        assert list(body["details"]) == ["formErrors", "fieldErrors"]
        assert body["details"]["formErrors"] or body["details"]["fieldErrors"]
    return body


def fields(answer: httpx.Response) -> list[str]:
    """Return the fields that a `validation_failed` names."""
    return list(refused(answer, "validation_failed")["details"]["fieldErrors"])
