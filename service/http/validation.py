"""Find every fault of a decoded value, in the order of the fields, in words to act on.

Only requests that msgspec has refused are walked: it stops at the first fault, this walk does
not. Both follow the same type information and agree (a property test holds them to it).
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import singledispatch
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import msgspec.inspect as mi

from service.http.scalars import Check

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
    if value is None and not isinstance(kind, mi.Metadata | mi.UnionType | mi.NoneType):
        yield FieldFault(path, "must not be null")
    else:
        yield from _walk(kind, value, path)


@singledispatch
def _walk(_kind: mi.Type, _value: object, _path: str) -> Iterator[FieldFault]:
    return iter(())


@_walk.register
def _(kind: mi.Metadata, value: object, path: str) -> Iterator[FieldFault]:
    """Run the check after the constraints, so that it only receives strings of bounded length."""
    fault = None
    for fault in faults(kind.type, value, path):
        yield fault
    check: Check | None = (kind.extra or {}).get("check")
    if check and fault is None and isinstance(value, str) and (message := check(value)):
        yield FieldFault(path, message)


@_walk.register
def _(kind: mi.UnionType, value: object, path: str) -> Iterator[FieldFault]:
    """Report the faults of the one member that is not None; our unions are all `T | None`."""
    if value is None and any(isinstance(member, mi.NoneType) for member in kind.types):
        return
    for member in kind.types:
        if not isinstance(member, mi.NoneType):
            yield from faults(member, value, path)


@_walk.register
def _(kind: mi.StructType, value: object, path: str) -> Iterator[FieldFault]:
    if not isinstance(value, dict):
        yield FieldFault(path, "expected an object")
        return
    for field in kind.fields:
        inner = f"{path}.{field.encode_name}" if path else field.encode_name
        yield from _member_faults(value, field, inner)


@_walk.register
def _(kind: mi.ListType, value: object, path: str) -> Iterator[FieldFault]:
    if not isinstance(value, list):
        yield FieldFault(path, "expected an array")
        return
    yield from _size_faults(kind, len(value), path, "entries")
    # Entries beyond the limit are not checked: a body of 1 MiB may hold 300,000 of them.
    for index, item in enumerate(islice(value, kind.max_length)):
        yield from faults(kind.item_type, item, f"{path}[{index}]")


@_walk.register
def _(kind: mi.StrType, value: object, path: str) -> Iterator[FieldFault]:
    """Report at most one fault a string, the first that applies."""
    if fault := _text_fault(value):
        yield FieldFault(path, fault)
    elif isinstance(value, str):
        yield from _size_faults(kind, len(value), path, "characters")


@_walk.register
def _(_kind: mi.DateType, value: object, path: str) -> Iterator[FieldFault]:
    if fault := _text_fault(value):
        yield FieldFault(path, fault)
        return
    try:
        msgspec.convert(value, date)
    except msgspec.ValidationError:
        yield FieldFault(path, "not a calendar date")


@_walk.register
def _(_kind: mi.BoolType, value: object, path: str) -> Iterator[FieldFault]:
    if not isinstance(value, bool):
        yield FieldFault(path, "expected true or false")


@_walk.register
def _(kind: mi.LiteralType, value: object, path: str) -> Iterator[FieldFault]:
    """Check a string against the choices; our literals are all strings."""
    if fault := _text_fault(value):
        yield FieldFault(path, fault)
    elif value not in kind.values:
        yield FieldFault(path, f"expected one of {', '.join(map(str, kind.values))}")


@_walk.register
def _(kind: mi.IntType, value: object, path: str) -> Iterator[FieldFault]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield FieldFault(path, "expected a whole number")
    elif kind.ge is not None and value < kind.ge:
        yield FieldFault(path, f"must be at least {kind.ge}")
    elif kind.le is not None and value > kind.le:
        yield FieldFault(path, f"must be at most {kind.le}")


def _text_fault(value: object) -> str | None:
    if not isinstance(value, str):
        return "expected a string"
    if "\0" in value:
        return "must not contain NUL"
    return "must be valid Unicode" if _SURROGATE.search(value) else None


def _size_faults(
    kind: mi.StrType | mi.ListType, size: int, path: str, unit: str
) -> Iterator[FieldFault]:
    if kind.min_length is not None and size < kind.min_length:
        yield FieldFault(
            path, f"at least {kind.min_length} {unit}" if size else "must not be empty"
        )
    elif kind.max_length is not None and size > kind.max_length:
        yield FieldFault(path, f"must have at most {kind.max_length} {unit}")
