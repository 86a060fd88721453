"""What is retried follows the document, and waits as the service asks."""

import json
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import httpx2
import pytest
from claim_ledger_client import Retries, operations
from claim_ledger_client._connection import answer_of
from claim_ledger_client.api_errors import BY_CODE
from claim_ledger_client.errors import (
    ApiError,
    ConnectionLostError,
    UnreachableError,
    UnreadableAnswerError,
)
from claim_ledger_client.operations import CREATE_CLAIM, STATUSES, Operation
from claim_ledger_client.retries import Patience, may_repeat

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())


def described() -> list[tuple[Operation, dict]]:
    """Return each operation with its rule in the document."""
    return [
        (getattr(operations, one["operationId"].upper()), one["x-retry"])
        for methods in DOCUMENT["paths"].values()
        for one in methods.values()
    ]


def test_codes_are_retried_as_the_document_says():
    """Of every operation, charged and not."""
    for operation, rule in described():
        for code, kind in BY_CODE.items():
            for charged in (True, False):
                error = kind(code, "No.", status=400, charged=charged)
                expected = code in rule["codes"] or (
                    code in rule.get("uncharged_codes", []) and not charged
                )
                assert may_repeat(operation, error) == expected, (operation.id, code)


def test_what_has_no_code_is_retried_where_a_repeat_is_safe():
    """By status, of answers that cannot be read, and of lost connections."""
    for operation, rule in described():
        safe = rule["repeat"] == "safe"
        assert may_repeat(operation, UnreachableError("x"))
        assert may_repeat(operation, ConnectionLostError("x")) == safe
        assert may_repeat(operation, UnreadableAnswerError(200, "x")) == safe
        for status in range(300, 600):
            expected = safe and status in STATUSES
            assert may_repeat(operation, UnreadableAnswerError(status, "x")) == expected
            assert may_repeat(operation, ApiError("new", "x", status=status)) == expected


def limited(seconds: int) -> ApiError:
    """Return a refusal that asks to wait."""
    return ApiError("rate_limited", "x", status=429, retry_after_seconds=seconds)


def test_the_wait_is_never_shorter_than_asked():
    """`Retry-After`, and the jitter on top."""
    waits = [Patience(Retries()).wait_seconds(CREATE_CLAIM, limited(17)) for _ in range(50)]
    assert all(wait is not None and 17 <= wait <= 17.25 for wait in waits)
    assert len(set(waits)) > 1


def test_a_proxy_may_say_by_a_date_how_long_to_wait():
    """In an answer without a code; what is no date asks for nothing, and a date that is past."""
    later = datetime.fromtimestamp(time.time() + 3_600, UTC)
    past = "Mon, 02 Jan 2006 15:04:05 GMT"
    asked = []
    for after in (format_datetime(later, usegmt=True), past, "soon", "", "Mon, 99 Jan 2006"):
        with pytest.raises(UnreadableAnswerError) as caught:
            answer_of(503, httpx2.Headers({"Retry-After": after}), b"bad", dict)
        asked.append(caught.value.retry_after_seconds)
    assert asked[0] is not None
    assert 3_590 <= asked[0] <= 3_600
    assert asked[1:] == [0, None, None, None]


def test_waits_grow_and_end():
    """Each may be twice the last, up to the longest; the last attempt's error is raised."""
    retries = Retries(attempts=6, first_wait_seconds=1, longest_wait_seconds=4)
    lost = ConnectionLostError("x")
    most = [0.0] * 6
    for _ in range(200):
        patience = Patience(retries)
        waits = [patience.wait_seconds(CREATE_CLAIM, lost) for _ in range(6)]
        assert waits[-1] is None
        most = [max(one, two or 0) for one, two in zip(most, waits, strict=True)]
    for longest, found in zip((1, 2, 4, 4, 4), most[:-1], strict=True):
        assert 0.7 * longest < found <= longest


@pytest.mark.parametrize(("asked", "again"), [(59, True), (61, False)])
def test_a_call_gives_up_before_a_wait_that_is_too_long(asked, again):
    """Rather than wait beyond its time."""
    patience = Patience(Retries(total_seconds=60, first_wait_seconds=0))
    assert (patience.wait_seconds(CREATE_CLAIM, limited(asked)) is not None) == again
