"""Decode the bytes of a request into typed, valid values, or refuse it and name every fault.

A valid body costs one pass of msgspec. One that msgspec refuses is decoded again without types
and walked (service/http/validation.py), so that the partner learns of all faults at once.
"""

import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Final, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
import msgspec.inspect as mi

from service.core.errors import Refusal
from service.core.garbage import collector_paused
from service.http.scalars import REPEATED, struct_info
from service.http.validation import FAULTS_MAX, field_errors

T = TypeVar("T", bound=msgspec.Struct)

_ESCAPED_NUL: Final = rb"\u0000"
"""A raw NUL is never valid in JSON, so this is the only way to send one."""

_SPACE: Final = b" \t\r\n"
"""What may stand around a JSON text (RFC 8259, 2)."""

_ROOM: Final = b" " * len(rb"\uDC00")
"""Behind a body that ends as an object does: msgspec calls half of a surrogate pair truncated where
fewer bytes follow than the other half has."""

_DIGITS_MAX: Final = sys.int_info.str_digits_check_threshold
"""Python parses so many digits, whatever its limit; a number that has them is beyond our bounds."""
_LONG_NUMBER: Final = re.compile(
    rb"(?<![0-9.eE+])(?<![eE]-)([1-9][0-9]{%d})([0-9]++)(?![.eE])" % (_DIGITS_MAX - 1)
)
"""A whole number of more digits, unless it stands in a string. It is looked for where one begins:
at each of its digits, it would take a time that grows with its square."""

_BARE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
OBJECTS_MAX: Final = 2_000
"""More than any type takes. A body of more is walked first: by its type msgspec makes each of an
array's objects before it looks at how many there may be, 300,000 in a MiB."""
QUERY_NUMBER_MAX: Final = 10**18
"""A whole number in a query is clamped to ± this, which fits a bigint."""
QUERY_BYTES_MAX: Final = 12 * 1024
"""More than all the parameters that an endpoint takes, as long as they may be."""
QUERY_FIELDS_MAX: Final = 100
"""Parameters, the unknown ones among them."""
CONTENT_TYPE_CHARACTERS_MAX: Final = 200
"""A longer Content-Type is none of ours."""
_UTF_8: Final = {f"charset={name}" for name in ("utf-8", "utf8", '"utf-8"', '"utf8"')}


def _number(text: str) -> float:
    """Return a number that has a point or an exponent; beyond a double's range it is infinite.

    2.0 is an integer to JSON Schema, and so it is to the OpenAPI document.
    """
    number = float(text)
    return int(number) if number.is_integer() else number


_untyped: Final = msgspec.json.Decoder(float_hook=_number)


def decode(body: bytes, content_type: str | None, type_: type[T]) -> T:
    """Return the body as a `type_`: UTF-8 JSON, strictly typed, no NUL in any known string.

    Unknown fields are ignored; the last of duplicate keys wins. Raises Refusal: `body_required`
    (no body, or not sent as JSON in UTF-8), `invalid_json`, or `validation_failed` with the
    faults of each top-level field, at most `FAULTS_MAX` of them.
    """
    if not _is_json(content_type):
        raise Refusal("body_required")
    try:
        if not body.isascii():
            body.decode()  # msgspec skips the strings of unknown fields without decoding them
        if _ESCAPED_NUL not in body and body.count(b"{") <= OBJECTS_MAX:
            return _decoder(type_).decode(body)
    except (ValueError, RecursionError):
        pass  # msgspec's errors and UnicodeDecodeError are ValueErrors, distinguished below
    return _decode_slowly(body, type_)


def decode_query(query_string: bytes, type_: type[T]) -> T:
    """Return a raw query string as a `type_`, whose fields are strings and whole numbers.

    Unknown parameters are ignored; a known one may be given once. Whole numbers may have a sign
    and any count of digits; they are clamped to ± `QUERY_NUMBER_MAX`.
    Raises Refusal: `validation_failed`.
    """
    if len(query_string) > QUERY_BYTES_MAX or query_string.count(b"&") >= QUERY_FIELDS_MAX:
        most = f"{QUERY_BYTES_MAX} bytes and {QUERY_FIELDS_MAX} parameters"
        raise Refusal("validation_failed", form_errors=[f"the query string has at most {most}"])
    kinds = {field.encode_name: field.type for field in struct_info(type_).fields}
    values: dict[str, object] = {}
    repeated: dict[str, list[str]] = {}
    # Bytes that are not UTF-8 become lone surrogates, which are refused as invalid Unicode.
    # `parse_qsl` takes a % that begins no escape, too, but at the cost of an exception for each.
    query = _BARE_PERCENT.sub("%25", query_string.decode(errors="surrogateescape"))
    for name, text in parse_qsl(query, keep_blank_values=True, errors="surrogateescape"):
        if name in values:
            repeated[name] = [REPEATED]
        elif name in kinds:
            values[name] = _whole_number(text) if _is_integer(kinds[name]) else text
    return _checked(values, type_, repeated)


def check(type_: type[T], **values: object) -> T:
    """Return values from elsewhere, such as a command line, as a `type_` by the same rules.

    Raises Refusal: `validation_failed`.
    """
    return _checked(values, type_, {})


def _decode_slowly(body: bytes, type_: type[T]) -> T:
    if not body.strip(_SPACE):
        raise Refusal("body_required")
    try:
        body.decode()
        is_whole = body.rstrip(_SPACE).endswith(b"}")
        value = _untyped_value(body + _ROOM if is_whole else body)
    except UnicodeDecodeError as error:
        where = f"not in UTF-8 (byte {error.start})"
        raise Refusal("invalid_json", f"The body is not valid JSON: {where}.") from error
    except msgspec.DecodeError as error:
        where = str(error).removeprefix("JSON is malformed: ")
        raise Refusal("invalid_json", f"The body is not valid JSON: {where}.") from error
    except RecursionError as error:
        raise Refusal("invalid_json", "The body is nested too deeply.") from error
    if not isinstance(value, dict):
        raise Refusal("validation_failed", form_errors=["expected an object"])
    return _checked(cast("dict[str, object]", value), type_, {})


@collector_paused()
def _untyped_value(body: bytes) -> object:
    """Return what a body says, with integers that Python will not parse cut short.

    Unknown fields may have them, as in the pass with types.
    """
    try:
        return _untyped.decode(body)
    except msgspec.ValidationError:  # all that it can be is such an integer, wherever it is
        return _untyped.decode(_cut_short(body))


def _cut_short(body: bytes) -> bytes:
    """Return a body with spaces for the digits that its whole numbers have too many.

    So all else stays in its place, in which a fault of it is told.
    """
    parts, end, is_text = list[bytes](), 0, False
    for match in _LONG_NUMBER.finditer(body):
        before = body[end : match.start()]
        quotes = before.replace(rb"\\", b"").replace(rb"\"", b"").count(b'"')
        is_text ^= quotes % 2 == 1
        digits, more = match.groups()
        parts += before, digits, more if is_text else b" " * len(more)
        end = match.end()
    return b"".join([*parts, body[end:]])


def _checked(values: Mapping[str, object], type_: type[T], errors: dict[str, list[str]]) -> T:
    errors = field_errors(values, struct_info(type_)) | errors
    if errors:
        full = sum(map(len, errors.values())) >= FAULTS_MAX
        notes = [f"at most {FAULTS_MAX} faults are listed"] if full else []
        raise Refusal("validation_failed", field_errors=errors, form_errors=notes)
    try:
        return msgspec.convert(values, type_)
    except msgspec.ValidationError as error:  # what only msgspec finds is no 500 either
        raise Refusal("validation_failed", form_errors=[str(error)]) from error


def _is_json(content_type: str | None) -> bool:
    """Return whether a Content-Type is application/json, in UTF-8 if it names a charset.

    Other parameters mean nothing (RFC 8259, 11). A comma means several headers (`bodies.header`).
    """
    if content_type == "application/json":
        return True
    text = (content_type or "").lower()
    if len(text) > CONTENT_TYPE_CHARACTERS_MAX or "," in text:
        return False
    kind, *parameters = (part.strip(" \t") for part in text.split(";"))
    named = {part for part in parameters if part.partition("=")[0].rstrip() == "charset"}
    return kind == "application/json" and named <= _UTF_8


def _whole_number(text: str) -> int | str:
    """Return the number, clamped, or text that is no number, which the walk refuses."""
    if not _WHOLE_NUMBER.fullmatch(text):
        return text
    digits = text.lstrip("+-").lstrip("0")
    size = QUERY_NUMBER_MAX if len(digits) > 18 else int(digits or "0")  # noqa: PLR2004 - as above
    return -size if text.startswith("-") else size


def _is_integer(kind: mi.Type) -> bool:
    while isinstance(kind, mi.Metadata):
        kind = kind.type
    return isinstance(kind, mi.IntType)


@cache
def _decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(type_)
