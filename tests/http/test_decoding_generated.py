"""Generated bodies: both passes of decoding agree with msgspec and with the schema."""

import json
from typing import Any

import jsonschema_rs
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.claims.wire import ClaimRequest
from service.core.errors import Refusal
from service.http.decoding import decode
from tests.http.bodies import JSON, body_with

steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no reason to fail."""

STRINGS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        STRINGS,
        st.sampled_from(["", "x" * 256, "2026-02-30", "1.00", "a@example.com", "1.00\n"]),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(STRINGS, inner, max_size=2),
    max_leaves=4,
)


def table(required: dict[str, Any], **optional: Any) -> Any:
    """Return objects, mostly good; in the others any member may be junk, or absent."""
    mostly = {name: one | JUNK for name, one in (required | optional).items()}
    good = st.fixed_dictionaries(required, optional=optional)
    return st.one_of(good, good, good, st.fixed_dictionaries({}, optional=mostly))


NAMES = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=8)
DATES = st.dates().map(str)
MOMENTS = st.datetimes().map(lambda moment: moment.isoformat() + "Z")
ADDRESSES = table({}, first_line=STRINGS, second_line=STRINGS | st.none(), town_city=STRINGS)


# In lower case because the schema validator's `email` format does not know `XN--`.
EMAILS = st.just("accounts@example.com") | st.emails().map(str.lower)
DEFENDANTS = table({"name": NAMES}, email=EMAILS, is_consumer=st.booleans(), address=ADDRESSES)
INVOICES = table(
    {},
    number=STRINGS,
    total_amount_for_invoice=st.decimals(0, 10**15 - 1, places=2).map(str),
    created_date=DATES,
    due_date=DATES | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True),
    summary=STRINGS,
)

CLAIMS = table(
    {
        "entity_id": NAMES,
        "partner_claim_id": NAMES,
        "defendant": DEFENDANTS,
        "invoices": st.lists(INVOICES, min_size=1, max_size=3),
    },
    partner_invoice_ids=st.lists(STRINGS, max_size=3),
    message=STRINGS,
    contract_date=MOMENTS,
    is_written=st.booleans(),
    document_refs=st.lists(
        table({"storage_path": NAMES | st.just("p"), "mime_type": NAMES, "filename": NAMES}),
        max_size=2,
    ),
)

SCHEMA = jsonschema_rs.validator_for(msgspec.json.schema(ClaimRequest), validate_formats=True)


def outcome(body: bytes) -> msgspec.Struct | Refusal:
    """Return the claim, or the refusal."""
    try:
        return decode(body, JSON, ClaimRequest)
    except Refusal as error:
        return error


@steady
@given(CLAIMS)
def test_the_walk_finds_a_fault_exactly_where_msgspec_refuses(value: object) -> None:
    """Both passes judge alike, so a refusal always has its field errors; the schema agrees."""
    body = json.dumps(value).encode()
    try:
        expected = msgspec.json.decode(body, type=ClaimRequest)
    except msgspec.ValidationError:
        expected = None
    actual = outcome(body)

    if expected is None:
        assert isinstance(actual, Refusal)
        assert actual.field_errors
    else:
        assert expected == actual
        assert SCHEMA.is_valid(value)


@steady
@given(CLAIMS)
def test_both_passes_answer_the_same_value(value: dict[str, Any]) -> None:
    """An unknown field with NUL forces the slow pass."""
    slow = outcome(json.dumps(value | {"unknown": "\0"}).encode())
    fast = outcome(json.dumps(value).encode())

    if isinstance(fast, Refusal):
        assert isinstance(slow, Refusal)
        assert fast.envelope() == slow.envelope()
    else:
        assert fast == slow


@steady
@given(JUNK.map(json.dumps).map(str.encode) | st.binary(max_size=40), st.integers(0, 40))
def test_any_bytes_are_taken_or_refused(body: bytes, cut: int) -> None:
    """Never another exception, which would be a 500."""
    for part in (body, body[:cut], body_with()[:cut] + body):
        outcome(part)
