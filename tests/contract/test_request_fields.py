"""The contract's tables of request fields (2.1, 2.3 to 2.5), row by row."""

import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from service.claims.wire import ClaimRequest
from service.core.errors import Refusal
from service.documents.paths import BYTES_MAX
from service.http.decoding import decode
from service.onboardings.wire import OnboardingRequest
from tests.contract.request_fields import (
    BODIES,
    ROWS,
    STRINGS,
    WRONG,
    Row,
    body_with,
    parent_of,
)
from tests.tables import every_row

pytestmark = pytest.mark.in_process("decodes bodies, without HTTP")


def decoded(row: Row, body: dict[str, Any]) -> Any:
    """Return a decoded body as built-in types."""
    return msgspec.to_builtins(decode(json.dumps(body).encode(), "application/json", row.request))


def errors_of(row: Row, body: dict[str, Any]) -> object:
    """Return the `fieldErrors` that a body is refused with."""
    with pytest.raises(Refusal) as refused:
        decoded(row, body)
    assert refused.value.code == "validation_failed"
    assert tuple(refused.value.form_errors) == ()
    return refused.value.field_errors


def test_a_complete_body_is_taken_as_it_is() -> None:
    """Every field of the tables is known and kept as sent."""
    with every_row() as row:
        for request, body in BODIES.items():
            with row(request.__name__):
                assert body == decoded(Row(request, (), "object"), body)


def test_an_absent_field_is_refused_if_it_is_required() -> None:
    """The column "Required"."""
    with every_row() as row:
        for one in ROWS:
            with row(one):
                body = deepcopy(BODIES[one.request])
                del parent_of(body, one)[one.path[-1]]
                if one.required:
                    assert one.errors("required") == errors_of(one, body)
                else:
                    defaults = {"max_bytes": BYTES_MAX} if one.path == ("max_bytes",) else {}
                    assert body | defaults == decoded(one, body)


def test_a_value_of_another_type_is_refused() -> None:
    """The column "Type"."""
    with every_row() as row:
        for one in ROWS:
            value, message = WRONG[one.type]
            with row(one):
                assert one.errors(message) == errors_of(one, body_with(one, value))


def test_null_is_refused_unless_the_table_allows_it() -> None:
    """Readings: also for optional fields."""
    with every_row() as row:
        for one in ROWS:
            with row(one):
                body = body_with(one, None)
                if one.type.endswith("or null"):
                    assert body == decoded(one, body)
                else:
                    assert one.errors("must not be null") == errors_of(one, body)


def test_an_empty_string_is_refused_if_it_is_required() -> None:
    """Readings: an optional string may be empty."""
    with every_row() as row:
        for one in ROWS:
            if one.type != "string":
                continue
            with row(one):
                body = body_with(one, "")
                if one.required:
                    assert one.errors("must not be empty") == errors_of(one, body)
                else:
                    assert body == decoded(one, body)


def test_nul_is_refused_in_every_string() -> None:
    """Readings: NUL in any string."""
    with every_row() as row:
        for one in ROWS:
            if one.type in STRINGS:
                with row(one):
                    errors = errors_of(one, body_with(one, "a\0b"))
                    assert one.errors("must not contain NUL") == errors


def test_at_least_one_invoice_is_required() -> None:
    """Contract 2.5: invoices, at least one entry."""
    row = Row(ClaimRequest, ("invoices",), "array")

    assert errors_of(row, body_with(row, [])) == {"invoices": ["must not be empty"]}


def test_the_two_shapes_of_address_are_not_interchangeable() -> None:
    """Contract 2.1: fields of the other shape are unknown, hence ignored."""
    row = Row(OnboardingRequest, ("address",), "object")
    body = body_with(row, {"town_city": "London", "county": "X"})

    assert decoded(row, body)["address"] == {}
