"""The scalar types of requests: what they accept, and that their schemas agree."""

import re
from datetime import date
from typing import Any

import jsonschema_rs
import msgspec
import msgspec.inspect as mi
import pytest
from email_validator import validate_email
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.claims.wire import ClaimListQuery, ClaimRequest
from service.connections.wire import ConnectRequest
from service.documents.wire import UploadRequest
from service.http import scalars
from service.http.scalars import (
    EMAIL_SHAPE,
    LIMITS,
    PLAIN_EMAIL,
    Checked,
    check_of,
    email_fault,
    typed_email,
)
from service.http.validation import faults
from service.onboardings.wire import OnboardingRequest
from tests.tables import every_row

steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no reason to fail."""

GOOD = [
    (scalars.Text, ""),
    (scalars.Text, " kept \r\n\t as it is é é 𐀀 "),
    (scalars.Text, "𐀀" * 255),
    (scalars.RequiredText, " "),
    (scalars.Message, "x" * 20_000),
    (scalars.Summary, "x" * 2_000),
    (scalars.StoragePath, "x" * 1_024),
    (scalars.Amount, "0.00"),
    (scalars.Amount, "000.10"),
    (scalars.Amount, "9" * 15 + ".99"),
    (scalars.CalendarDate, "2024-02-29"),
    (scalars.CalendarDate, "0001-01-01"),
    (scalars.CalendarDate, "9999-12-31"),
    (scalars.Rfc3339, "2026-01-31T09:30:00Z"),
    (scalars.Rfc3339, "2026-01-31t09:30:00.123456789z"),
    (scalars.Rfc3339, "2026-01-31T23:59:59.1-12:30"),
    (scalars.EmailAddress, "owner@example.com"),
    (scalars.EmailAddress, "Owner+Tag@Sub.Example.COM"),
    (scalars.EmailAddress, "o'brien!#$%&*/=?^_`{|}~-@example.com"),
    (scalars.EmailAddress, "a@business.test"),
    (scalars.EmailAddress, "a@xn--bcher-kva.example"),
    (scalars.EmailAddress, "a@a--b.example"),
]

REFUSED = [
    (scalars.Text, "x" * 256, "must have at most 255 characters"),
    (scalars.Text, "a\0b", "must not contain NUL"),
    (scalars.Text, 1, "expected a string"),
    (scalars.Text, None, "must not be null"),
    (scalars.RequiredText, "", "must not be empty"),
    (scalars.Message, "x" * 20_001, "must have at most 20000 characters"),
    (scalars.Summary, "x" * 2_001, "must have at most 2000 characters"),
    (scalars.StoragePath, "x" * 1_025, "must have at most 1024 characters"),
    *(
        (scalars.Amount, text, "not an amount with two decimal places, such as 125.00")
        for text in ("", "1", "1.0", "1.000", "-1.00", "+1.00", "1,00", " 1.00", "1.00 ", ".00")
    ),
    *(
        (scalars.Amount, text, "not an amount with two decimal places, such as 125.00")
        for text in ("1.00\n", "1e2.00", "1_0.00", "\u0661.00", "1.0\u0660", "NaN", "1" * 16 + ".0")
    ),
    (scalars.Amount, "1" * 16 + ".00", "must have at most 18 characters"),
    (scalars.Amount, 125.0, "expected a string"),
    *(
        (scalars.CalendarDate, text, "not a calendar date")
        for text in ("", "2024-02-30", "2023-02-29", "2024-13-01", "2024-00-01", "2024-01-00")
    ),
    *(
        (scalars.CalendarDate, text, "not a calendar date")
        for text in ("24-01-01", "20240101", "2024-1-1", "2024-W01-1", "0000-01-01", "2024-01-01\n")
    ),
    (scalars.CalendarDate, "2024-01-01T00:00:00Z", "not a calendar date"),
    (scalars.CalendarDate, "\u0662024-01-01", "not a calendar date"),
    (scalars.CalendarDate, "2024-01-0\0", "must not contain NUL"),
    (scalars.CalendarDate, 20240101, "expected a string"),
    *(
        (scalars.Rfc3339, text, scalars.moment_fault(""))
        for text in (
            "",
            "2026-01-31",
            "2026-01-31T09:30:00",
            "2026-01-31 09:30:00Z",
            "2026-01-31T09:30Z",
            "2026-01-31T09:30:00+0100",
            "2026-01-31T09:30:00+24:00",
            "2026-01-31T24:00:00Z",
            "2026-02-30T09:30:00Z",
            "0000-01-01T09:30:00Z",
            "2026-01-31T09:30:60Z",
            "2026-01-31T09:30:00.Z",
            "2026-01-31T09:30:00.1234567890Z",
            "2026-01-31T09:30:00Z\n",
            "2026-01-31T0\u0669:30:00Z",
        )
    ),
    (scalars.Rfc3339, "2026-01-31T09:30:00." + "1" * 30 + "Z", "must have at most 35 characters"),
    *(
        (scalars.EmailAddress, text, "not an email address")
        for text in (
            "",
            "owner",
            "@example.com",
            "owner@",
            "owner@example",
            "owner@@example.com",
            "a@b@example.com",
            ".a@example.com",
            "a.@example.com",
            "a..b@example.com",
            "a@-example.com",
            "a@example-.com",
            "a@example..com",
            "a@.example.com",
            "a@example.com.",
            "a@example.com\n",
            " a@example.com",
            "a b@example.com",
            "a@example.com\r\nBcc: b@example.com",
            "Name <a@example.com>",
            '"a b"@example.com',
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a@localhost",
            "a@host.local",
            "a@host.invalid",
            "a@xn--a.example",
            "a@" + "x" * 64 + ".example.com",
            "a" * 65 + "@example.com",
            "a/" + "a" * 63 + "@example.com",
        )
    ),
    *(
        (scalars.EmailAddress, text, email_fault("é@example.com"))
        for text in ("é@example.com", "a@bücher.example", "a@example.com\u212a")
    ),
    (scalars.EmailAddress, "a@" + "example." * 32 + "com", "must have at most 254 characters"),
    (scalars.EmailAddress, ["a@example.com"], "expected a string"),
]


def holder(kind: Any) -> type[msgspec.Struct]:
    """Return a wire type with the one field `value`."""
    return msgspec.defstruct("Holder", [("value", kind)], bases=(Checked,), kw_only=True)


def schema(kind: Any) -> jsonschema_rs.Validator:
    """Return a validator of a type's schema, formats included."""
    return jsonschema_rs.validator_for(msgspec.json.schema(kind), validate_formats=True)


def identify(value: object) -> str:
    """Return a short ASCII id."""
    return ascii(value)[:30]


def test_a_good_value_is_taken_as_it_was_written() -> None:
    """Decoding, the walk and the schema accept it; encoding returns it unchanged."""
    with every_row() as row:
        for kind, value in GOOD:
            with row(identify(value)):
                decoded = msgspec.convert({"value": value}, holder(kind))
                assert {"value": value} == msgspec.to_builtins(decoded)
                assert list(faults(mi.type_info(kind), value)) == []
                assert schema(kind).is_valid(value)


def test_a_bad_value_is_refused() -> None:
    """The walk gives the reason. Decoding refuses it too, except NUL, which decode() checks."""
    with every_row() as row:
        for kind, value, message in REFUSED:
            with row(identify(value)):
                assert [message] == [fault.message for fault in faults(mi.type_info(kind), value)]
                if message != "must not contain NUL":
                    with pytest.raises(msgspec.ValidationError):
                        msgspec.convert({"value": value}, holder(kind))


def test_the_schema_refuses_what_is_refused() -> None:
    """The schema knows only the form of email addresses."""
    with every_row() as row:
        for kind, value, message in REFUSED:
            if message != "not an email address":
                with row(identify(value)):
                    assert not schema(kind).is_valid(value)


@steady
@given(st.from_regex(PLAIN_EMAIL, fullmatch=True))
def test_the_quick_pattern_accepts_only_valid_addresses(text: str) -> None:
    """The quick pattern is an optimisation and decides nothing."""
    if len(text) <= LIMITS["email"]:
        validate_email(text, check_deliverability=False, test_environment=True)


@steady
@given(st.emails().map(str.lower))  # the validator's `email` format does not know `XN--`
def test_a_generated_address_that_is_taken_fits_the_schema(text: str) -> None:
    """The published pattern and format are never stricter than the check."""
    if email_fault(text) is None:
        assert re.fullmatch(EMAIL_SHAPE, text)
        assert schema(scalars.EmailAddress).is_valid(text)


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        *[(one, one) for one in ("", "Info@Example.com", "no address", "zoë@example.com", "é")],
        ("info@bücher.example", "info@xn--bcher-kva.example"),
        ("Info@STRAßE.example", "Info@xn--strae-oqa.example"),
        ("zoë@bücher.example", "zoë@bücher.example"),
        ("é@" * 200, "é@" * 200),
    ],
)
def test_a_typed_domain_is_that_of_its_ascii_form(typed: str, address: str) -> None:
    """Only the domain is converted: what is before the @ has one spelling, and that in ASCII."""
    assert typed_email(typed) == address
    assert (email_fault(typed_email(typed)) is None) == ("@" in address and address.isascii())


def test_dates_have_one_spelling() -> None:
    """A date is written back as it was read."""
    assert date(2024, 2, 29) == msgspec.convert("2024-02-29", scalars.CalendarDate)


def leaves(kind: mi.Type, owner: type | None = None) -> list[tuple[type | None, mi.Type]]:
    """Return every leaf of a type with the Struct that contains it."""
    inner: list[mi.Type] = []
    match kind:
        case mi.Metadata() if check_of(kind) is None:
            inner = [kind.type]
        case mi.UnionType():
            inner = list(kind.types)
        case mi.ListType():
            inner = [kind.item_type]
        case mi.StructType():
            owner, inner = kind.cls, [field.type for field in kind.fields]
        case _:
            return [(owner, kind)]
    return [leaf for one in inner for leaf in leaves(one, owner)]


REQUESTS = (ClaimRequest, OnboardingRequest, ConnectRequest, UploadRequest, ClaimListQuery)


@pytest.mark.parametrize("request_type", REQUESTS)
def test_every_checked_leaf_is_in_a_checked_struct(request_type: type[msgspec.Struct]) -> None:
    """An email address in a Struct without the base would not be checked."""
    for owner, leaf in leaves(mi.type_info(request_type)):
        if check_of(leaf):
            assert owner is not None
            assert issubclass(owner, Checked)


@pytest.mark.parametrize("request_type", REQUESTS)
def test_every_string_and_array_of_a_request_is_bounded(
    request_type: type[msgspec.Struct],
) -> None:
    """Lengths and counts have a documented maximum."""
    definitions = msgspec.json.schema_components([request_type])[1]
    for definition in definitions.values():
        for field in definition["properties"].values():
            for part in [field, *field.get("anyOf", []), field.get("items", {})]:
                if "enum" in part:
                    continue
                if part.get("type") == "string" and part.get("format") != "date":
                    assert part["maxLength"] in LIMITS.values()
                if part.get("type") == "array":
                    assert part["maxItems"] in LIMITS.values()


@pytest.mark.parametrize("request_type", REQUESTS)
def test_every_example_is_valid_and_every_field_described(
    request_type: type[msgspec.Struct],
) -> None:
    """The OpenAPI document's examples can be pasted."""
    definitions = msgspec.json.schema_components([request_type])[1]
    for definition in definitions.values():
        for name, field in definition["properties"].items():
            assert field.get("description"), name
            for example in field.get("examples", []):
                assert jsonschema_rs.is_valid(field, example), name
