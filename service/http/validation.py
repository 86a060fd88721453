"""Find every fault of a decoded value, in the order of the fields, in words to act on.

Only requests that msgspec has refused are walked: it stops at the first fault, this walk does
not. Both follow the same type information and agree (a property test holds them to it).
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import msgspec.inspect as mi

from service.http.scalars import REPEATED, Check, repeated, unique_member

FAULTS_MAX: Final = 100
"""Faults named in one response; `formErrors` says when there are more."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class FieldFault(NamedTuple):
    """What is wrong and where; `path` is relative to the value walked, and may be empty."""

    path: str
    message: str

    def __str__(self) -> str:
        """Return `[0].due_date: not a calendar date`, or the message alone."""
        return f"{self.path}: {self.message}" if self.path else self.message


def field_errors(value: Mapping[str, object], info: mi.StructType) -> dict[str, list[str]]:
    """Return the messages of each top-level field that has faults; at most `FAULTS_MAX`."""
    found = (
        (field.encode_name, str(fault))
        for field in info.fields
        for fault in _member_faults(value, field, "")
    )
    errors: dict[str, list[str]] = {}
    for name, message in islice(found, FAULTS_MAX):
        errors.setdefault(name, []).append(message)
    return errors


def _member_faults(value: Mapping[str, object], field: mi.Field, path: str) -> Iterator[FieldFault]:
    if field.encode_name in value:
        yield from faults(field.type, value[field.encode_name], path)
    elif field.required:
        yield FieldFault(path, "required")


def faults(kind: mi.Type, value: object, path: str = "") -> Iterator[FieldFault]:
    """Yield each fault of `value` as a `kind`; `path` is the path of the value.

    A kind that no wire type uses yields none; the caller then reports msgspec's own error.
    """
    match kind:
        case mi.Metadata():
            yield from _constrained_faults(kind, value, path)
        case mi.UnionType():  # our unions are all `T | None`
            members = [one for one in kind.types if not isinstance(one, mi.NoneType)]
            if value is not None or len(members) == len(kind.types):
                for member in members:
                    yield from faults(member, value, path)
        case mi.NoneType():
            return
        case _ if value is None:
            yield FieldFault(path, "must not be null")
        case mi.StructType():
            yield from _struct_faults(kind, value, path)
        case mi.ListType():
            yield from _list_faults(kind, value, path)
        case _:
            if message := _scalar_fault(kind, value):
                yield FieldFault(path, message)


def _constrained_faults(kind: mi.Metadata, value: object, path: str) -> Iterator[FieldFault]:
    """Run the check after the constraints, so that it only receives strings of bounded length."""
    fault = None
    for fault in faults(kind.type, value, path):
        yield fault
    check: Check | None = (kind.extra or {}).get("check")
    if check and fault is None and isinstance(value, str) and (message := check(value)):
        yield FieldFault(path, message)


def _struct_faults(kind: mi.StructType, value: object, path: str) -> Iterator[FieldFault]:
    if not isinstance(value, dict):
        yield FieldFault(path, "expected an object")
        return
    for field in kind.fields:
        inner = f"{path}.{field.encode_name}" if path else field.encode_name
        yield from _member_faults(value, field, inner)


def _list_faults(kind: mi.ListType, value: object, path: str) -> Iterator[FieldFault]:
    if not isinstance(value, list):
        yield FieldFault(path, "expected an array")
        return
    if message := _size_fault(kind, len(value), "entries"):
        yield FieldFault(path, message)
    # Entries beyond the limit are not checked: a body of 1 MiB may hold 300,000 of them.
    for index, item in enumerate(islice(value, kind.max_length)):
        yield from faults(kind.item_type, item, f"{path}[{index}]")
    if member := unique_member(kind):
        entries = islice(value, kind.max_length)
        for index in repeated(
            one.get(member) if isinstance(one, dict) else None for one in entries
        ):
            yield FieldFault(f"{path}[{index}].{member}", REPEATED)


def _scalar_fault(kind: mi.Type, value: object) -> str | None:
    """Return the first fault of a string, a date, a choice, a flag or a number, or None."""
    fault = None
    match kind:
        case mi.StrType() | mi.DateType() | mi.LiteralType() if text_fault := _text_fault(value):
            fault = text_fault
        case mi.StrType() if isinstance(value, str):
            fault = _size_fault(kind, len(value), "characters") or _pattern_fault(kind, value)
        case mi.DateType():
            try:
                msgspec.convert(value, date)
            except msgspec.ValidationError:
                fault = "not a calendar date"
        case mi.BoolType() if not isinstance(value, bool):
            fault = "expected true or false"
        case mi.LiteralType() if value not in kind.values:  # our literals are all strings
            fault = f"expected one of {', '.join(map(str, kind.values))}"
        case mi.IntType():
            fault = _number_fault(kind, value)
        case _:
            pass
    return fault


def _number_fault(kind: mi.IntType, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return "expected a whole number"
    if kind.ge is not None and value < kind.ge:
        return f"must be at least {kind.ge}"
    return f"must be at most {kind.le}" if kind.le is not None and value > kind.le else None


def _text_fault(value: object) -> str | None:
    if not isinstance(value, str):
        return "expected a string"
    if "\0" in value:
        return "must not contain NUL"
    return "must be valid Unicode" if _SURROGATE.search(value) else None


def _pattern_fault(kind: mi.StrType, text: str) -> str | None:
    if kind.pattern is None or re.search(kind.pattern, text):  # as msgspec looks for it
        return None
    return f"must match {kind.pattern}"


def _size_fault(kind: mi.StrType | mi.ListType, size: int, unit: str) -> str | None:
    if kind.min_length is not None and size < kind.min_length:
        return f"at least {kind.min_length} {unit}" if size else "must not be empty"
    if kind.max_length is not None and size > kind.max_length:
        return f"must have at most {kind.max_length} {unit}"
    return None
