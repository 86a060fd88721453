"""The constrained scalars that wire types are made of, and the one table of lengths.

A wire type is a `msgspec.Struct` whose fields are of these types. Values stay what the partner
sent, byte for byte: nothing is trimmed, folded or normalised. Each type carries its rules twice:
as constraints that msgspec enforces while decoding, and as JSON Schema for the OpenAPI document.
What msgspec cannot say (an amount, an email address, a moment, a path once) is in `Meta.extra`,
which `Checked` runs on the decoded object and service/http/validation.py on the raw value.

An optional field is `Text | UnsetType = UNSET`: absent is fine, null is refused. Where the
contract says "or null" it is `Text | UnsetType | None = UNSET`. UNSET is false, is left out when
encoded, and is optional but not nullable in the schema.

A string with a limit of its own has a row in `LIMITS` and a type here, as `Message` has, and is
`Message | UnsetType`. A `max_length` in `described` would be the union's, which msgspec refuses.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from typing import Annotated, Any, Final

import msgspec
import msgspec.inspect as mi
from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email
from msgspec import UNSET, Meta, UnsetType

from service.core.invisible_characters import name_fault

LIMITS: Final[Mapping[str, int]] = {
    "text": 255,
    "message": 20_000,
    "summary": 2_000,
    "storage_path": 1_024,
    "email": 254,
    "moment": 35,
    "amount": 18,
    "invoices": 1_000,
    "partner_invoice_ids": 1_000,
    "document_refs": 100,
}
"""The most that is accepted: characters (Unicode code points) of strings, entries of arrays.

The contract is silent (section 8). Sources: `email` RFC 5321, `storage_path` the limit of object
names in cloud storage, `amount` 15 digits before the point, `moment` nine digits of a second.
"""


OPEN_ENUM: Final = "x-extensible-enum"
"""In a schema: the values that there are today. A later release may return more, which an `enum`
would have clients refuse."""


def described(description: str, *examples: object, **rules: Any) -> Meta:  # noqa: ANN401 - Meta's
    """Return a field's description and examples for the reference, and its rules as `Meta` has."""
    return Meta(description=description, examples=list(examples) or None, **rules)


Check = Callable[[str], str | None]
"""Returns what is wrong with a string, or None."""

UNIQUE: Final[Mapping[str, bool]] = {"unique": True}
"""In `Meta.extra`: no two objects of an array may have the same string here."""

REPEATED: Final = "given more than once"

_NO_NUL: Final[dict[str, Any]] = {"pattern": r"^[^\u0000]*$"}
"""PostgreSQL cannot store NUL. service/http/decoding.py refuses it; this documents it."""


def _string(
    limit: str, *, least: int | None = None, check: Check | None = None, **schema: str
) -> Meta:
    """Return the rules of a string: its limit and least length, its check, its JSON Schema."""
    return Meta(
        min_length=least,
        max_length=LIMITS[limit],
        extra_json_schema=schema or _NO_NUL,
        extra={"check": check} if check else None,
    )


Text = Annotated[str, _string("text")]
"""A reference, name, label or line of an address; may be empty."""

RequiredText = Annotated[str, _string("text", least=1)]
"""As `Text`, for required fields: not empty."""

Line = Annotated[str, _string("text", check=name_fault)]
"""As `Text`, where people enter it on pages of ours: on one line, with nothing that is not seen.

The partner API takes any text (contract); pages show what would not be seen, by
core/invisible_characters.py."""

Name = Annotated[str, _string("text", least=1, check=name_fault)]
"""As `Line`, for required fields: not empty."""

Message = Annotated[str, _string("message")]
Summary = Annotated[str, _string("summary")]
StoragePath = Annotated[str, _string("storage_path", least=1)]

_AMOUNT: Final = r"[0-9]{1,15}\.[0-9]{2}"


def amount_fault(text: str) -> str | None:
    """Return what is wrong with an amount, or None.

    `Meta.pattern` would not do: it goes into the schema as it is, and the `$` that ends a string in
    JSON Schema accepts a trailing newline in Python.
    """
    if re.fullmatch(_AMOUNT, text):
        return None
    return "not an amount with two decimal places, such as 125.00"


Amount = Annotated[str, _string("amount", check=amount_fault, pattern=f"^{_AMOUNT}$")]
"""A decimal amount in the invoice's currency: at most 15 digits, a point, two digits, no sign."""

_YEAR: Final = r"([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
"""Not 0000, which the formats of RFC 3339 have, and neither Python nor PostgreSQL."""

CalendarDate = Annotated[
    date, Meta(extra_json_schema={"pattern": f"^{_YEAR}-[0-9]{{2}}-[0-9]{{2}}$"})
]
"""A day of the Gregorian calendar, `YYYY-MM-DD`, years 0001 to 9999. Its text is its one form."""

_MOMENT: Final = (
    rf"{_YEAR}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def moment_fault(text: str) -> str | None:
    """Return what is wrong with an RFC 3339 moment with an offset, or None.

    A leap second (`:60`) is refused: neither Python nor PostgreSQL would return it unchanged.
    """
    with suppress(ValueError):
        date.fromisoformat(text[:10])
        if re.fullmatch(_MOMENT, text):
            return None
    return "not an RFC 3339 timestamp with an offset, such as 2026-01-31T09:30:00Z"


Rfc3339 = Annotated[
    str, _string("moment", check=moment_fault, format="date-time", pattern=f"^{_MOMENT}$")
]
"""A moment with an offset, kept as it was written."""

LOCAL_PART_OCTETS_MAX: Final = 64
"""Before the `@` of an email address (RFC 5321, 4.5.3.1.1)."""

EMAIL_SHAPE: Final = (
    rf"^[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,{LOCAL_PART_OCTETS_MAX}}}@[A-Za-z0-9.-]+$"
)

# A fast path, 20 times faster: accepts only what the library accepts too (a property test shows
# it). Two hyphens in a row, as in punycode, and special-use domains are left to the library.
PLAIN_EMAIL: Final = re.compile(
    r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*"
    r"@(?:[A-Za-z0-9](?:-?[A-Za-z0-9]){0,30}\.)+"
    rf"(?!(?:{'|'.join(name.rpartition('.')[2] for name in SPECIAL_USE_DOMAIN_NAMES)})\Z)"
    r"[A-Za-z]{2,24}",
    re.IGNORECASE | re.ASCII,
)


def email_fault(text: str) -> str | None:
    """Return what is wrong with an email address, or None.

    ASCII only, so that one mailbox has one spelling and every mail server takes it: an
    international domain is written in its `xn--` form. Names under .test are taken; whether
    the domain exists is not looked up. The length comes first: the library's time grows faster than
    what it is given.
    """
    local = text.rpartition("@")[0]
    if len(text) > LIMITS["email"] or len(local.encode()) > LOCAL_PART_OCTETS_MAX:
        return "not an email address"
    if PLAIN_EMAIL.fullmatch(text):
        return None
    try:
        if not text.isascii():
            return "use letters without accents before the @, and write the domain in its xn-- form"
        validate_email(
            text, check_deliverability=False, test_environment=True, allow_smtputf8=False
        )
    except EmailNotValidError:
        return "not an email address"
    return None


def typed_email(text: str) -> str:
    """Return an email address as a person typed it, with an international domain in its xn-- form.

    What has none, or is no address, is returned as it is.
    """
    local, _, domain = text.rpartition("@")
    if domain.isascii() or not local.isascii() or len(text) > LIMITS["email"]:
        return text
    try:
        valid = validate_email(text, check_deliverability=False, test_environment=True)
    except EmailNotValidError:
        return text
    return f"{local}@{valid.ascii_domain}"


EmailAddress = Annotated[
    str, _string("email", check=email_fault, format="email", pattern=EMAIL_SHAPE)
]
"""An address that mail could be sent to, kept as it was written."""

Timestamp = Annotated[
    str,
    Meta(
        extra_json_schema={
            "format": "date-time",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        }
    ),
]
"""A moment in our responses: UTC, three digits, `Z` (contract section 2); see core/clock.py."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a wire type whose fields have checks, such as `Amount`, or objects with `UNIQUE`.

    Raises ValueError when one is faulty, which msgspec turns into its ValidationError.
    """

    def __post_init__(self) -> None:
        """Run the checks that msgspec cannot express; called after each decoding."""
        for name, check in _checks(type(self)):
            value = getattr(self, name)
            if isinstance(value, str) and (fault := check(value)):
                raise ValueError(f"{name}: {fault}")
        for name, member in _uniques(type(self)):
            entries = getattr(self, name) or ()
            if any(repeated(getattr(entry, member) for entry in entries)):
                raise ValueError(f"{name}: {member} {REPEATED}")


@cache
def struct_info(struct: type[msgspec.Struct]) -> mi.StructType:
    """Return what msgspec knows about a struct."""
    info = mi.type_info(struct)
    if not isinstance(info, mi.StructType):
        raise TypeError(f"{struct.__name__} is not a Struct")
    return info


@cache
def _checks(struct: type[msgspec.Struct]) -> tuple[tuple[str, Check], ...]:
    found = ((field.name, check_of(field.type)) for field in struct_info(struct).fields)
    return tuple((name, check) for name, check in found if check)


@cache
def _uniques(struct: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    found = ((field.name, unique_member(field.type)) for field in struct_info(struct).fields)
    return tuple((name, member) for name, member in found if member)


def check_of(kind: mi.Type) -> Check | None:
    """Return the check that a field's type carries in `Meta.extra`, or None."""
    return _extra(kind, "check")


def unique_member(kind: mi.Type) -> str | None:
    """Return the member that no two objects of an array may share, or None."""
    while isinstance(kind, mi.Metadata):
        kind = kind.type
    if not isinstance(kind, mi.ListType) or not isinstance(kind.item_type, mi.StructType):
        return None
    fields = kind.item_type.fields
    return next((field.encode_name for field in fields if _extra(field.type, "unique")), None)


def repeated(texts: Iterable[object]) -> Iterator[int]:
    """Yield the number of each string that came before; what is no string is passed over."""
    seen = set[str]()
    for number, text in enumerate(texts):
        if isinstance(text, str):
            if text in seen:
                yield number
            seen.add(text)


def _extra(kind: mi.Type, name: str) -> Any:  # noqa: ANN401 - Meta's
    while isinstance(kind, mi.Metadata):
        if kind.extra and name in kind.extra:
            return kind.extra[name]
        kind = kind.type
    return None


def given(value: str | UnsetType) -> str | None:
    """Return an optional value, or None where it was not sent."""
    return None if value is UNSET else value
