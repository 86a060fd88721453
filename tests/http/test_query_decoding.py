"""From a query string to typed values: every fault is named, and nothing is a 500."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.claims.wire import ClaimListQuery
from service.core.errors import Refusal
from service.http.decoding import QUERY_NUMBER_MAX, decode_query

steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no reason to fail."""


def query_errors(query: bytes) -> object:
    """Return the `fieldErrors` that a query is refused with."""
    with pytest.raises(Refusal) as refused:
        decode_query(query, ClaimListQuery)
    assert refused.value.code == "validation_failed"
    return refused.value.field_errors


def test_a_query_is_decoded() -> None:
    """Names and values are percent-decoded; unknown parameters are ignored, however often."""
    query = b"entity_id=ent%5F1&limit=50&partner_user_id=a+%C3%A9&x=1&x=2&y"

    expected = ClaimListQuery(entity_id="ent_1", limit=50, partner_user_id="a é")
    assert expected == decode_query(query, ClaimListQuery)


def test_what_is_not_in_a_query_is_at_its_default() -> None:
    """Contract 4.5: the default page size is 100."""
    query = decode_query(b"entity_id=a", ClaimListQuery)

    assert (
        query.limit,
        query.page_token,
        query.partner_user_id,
    ) == (100, msgspec.UNSET, msgspec.UNSET)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("0", 0),
        ("-5", -5),
        ("%2B7", 7),
        ("007", 7),
        ("-0", 0),
        ("9" * 18, QUERY_NUMBER_MAX - 1),
        ("9" * 19, QUERY_NUMBER_MAX),
        ("9" * 10_000, QUERY_NUMBER_MAX),
        ("-" + "9" * 10_000, -QUERY_NUMBER_MAX),
        ("0" * 10_000 + "3", 3),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_limit_is_a_whole_number_of_any_size(text: str, limit: int) -> None:
    """The caller clamps it; digits without end do not crash it."""
    assert limit == decode_query(b"entity_id=a&limit=" + text.encode(), ClaimListQuery).limit


@pytest.mark.parametrize("text", ["", "ten", "1.0", "1e2", "+1", "1_0", "0x1", "%D9%A1", "--1"])
def test_a_limit_that_is_no_whole_number_is_refused(text: str) -> None:
    """Readings; an unescaped plus is a space."""
    query = b"entity_id=a&limit=" + text.encode()

    assert query_errors(query) == {"limit": ["expected a whole number"]}


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        (b"", {"entity_id": ["required"]}),
        (b"entity_id", {"entity_id": ["must not be empty"]}),
        (b"entity_id=%00", {"entity_id": ["must not contain NUL"]}),
        (b"entity_id=%FF", {"entity_id": ["must be valid Unicode"]}),
        (b"entity_id=\xff", {"entity_id": ["must be valid Unicode"]}),
        (b"entity_id=%ED%A0%80", {"entity_id": ["must be valid Unicode"]}),
        (b"entity_id=a&entity_id=a", {"entity_id": ["given more than once"]}),
        (
            b"limit=x&page_token=&partner_user_id=%00",
            {
                "entity_id": ["required"],
                "limit": ["expected a whole number"],
                "page_token": ["must not be empty"],
                "partner_user_id": ["must not contain NUL"],
            },
        ),
    ],
)
def test_every_fault_of_a_query_is_named(query: bytes, errors: object) -> None:
    """Keyed by parameter; a known parameter may be given once."""
    assert errors == query_errors(query)


@pytest.mark.parametrize("query", [b"&z=1" * 100, b"entity_id=" + b"a" * 12_288])
def test_a_query_string_has_limits(query: bytes) -> None:
    """As a whole, whatever its parameters are."""
    with pytest.raises(Refusal) as refused:
        decode_query(query, ClaimListQuery)
    assert refused.value.form_errors == [
        "the query string has at most 12288 bytes and 100 parameters"
    ]


@steady
@given(st.binary(max_size=60))
def test_any_query_is_taken_or_refused(query: bytes) -> None:
    """Never another exception, which would be a 500."""
    for text in (query, b"entity_id=" + query, b"entity_id=a&limit=" + query):
        with suppress(Refusal):
            decode_query(text, ClaimListQuery)
