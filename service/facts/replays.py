"""Idempotent replays: whether a request has the same body as the first (contract 4.1, 4.4).

A creation records the fingerprint of its request, a keyed hash, and the version of the request's
shape that the fingerprint covers. A field that a later release adds was ignored before, sent or
not, so it is no part of earlier fingerprints: a replay is compared by the version that its creation
recorded. Each added field, nested ones included, names its version beside its type:

    currency: Annotated[Text | UnsetType, described("…", extra={"since": N})] = UNSET

N is one more than the newest version in tests/facts/request_fields.json, whose test says so. The
fields of a struct that comes with a later field name it, too. The fields of a version never change,
nor does their order: both are part of the fingerprint. Version 2 has no fields of its own: since
it, fingerprints have a key of their own (service/ledger/encryption.py).
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from uuid import UUID

import msgspec
import msgspec.inspect as mi

from service.core.ids import stream_id
from service.facts.claims import ClaimCreated, ClaimReplayMismatched
from service.facts.onboardings import OnboardingReplayMismatched, OnboardingStarted
from service.ledger.encryption import FINGERPRINT_VERSION, DataKey


class Mismatch(NamedTuple):
    """The fact that a replay came with another body, and its stream.

    The stream is derived from the body, so each body is recorded once, however often it comes.
    """

    stream_id: UUID
    event: ClaimReplayMismatched | OnboardingReplayMismatched


class ReplayComparison(NamedTuple):
    """How a replay compares; `matches` is None where nothing could be compared."""

    matches: bool | None
    mismatch: Mismatch | None = None


def compare(
    mode: str, made: ClaimCreated | OnboardingStarted, request: msgspec.Struct, key: DataKey | None
) -> ReplayComparison:
    """Compare a replay with the creation of the first request.

    Nothing is compared once the data key is destroyed (`key` is None), nor where a later release
    made the fingerprint: it may cover fields that this one does not decode.
    """
    if key is None or made.fingerprint_version > request_version(type(request)):
        return ReplayComparison(None)
    found = fingerprint(key, request, made.fingerprint_version)
    if found == made.fingerprint:
        return ReplayComparison(True)
    if isinstance(made, ClaimCreated):
        made_id = made.claim_id
        event = ClaimReplayMismatched(claim_id=made_id, fingerprint=found)
    else:
        made_id = made.onboarding_id
        event = OnboardingReplayMismatched(onboarding_id=made_id, fingerprint=found)
    return ReplayComparison(False, Mismatch(stream_id("mismatch", mode, made_id, found), event))


def fingerprint(key: DataKey, request: msgspec.Struct, version: int) -> str:
    """Return the fingerprint of a request as one version of its shape has it."""
    if version < _youngest(type(request)):
        return key.fingerprint(msgspec.json.encode(_as_of(request, version)), version)
    return key.fingerprint(msgspec.json.encode(request, order="deterministic"), version)


@cache
def request_version(kind: type[msgspec.Struct]) -> int:
    """Return the version that a request's fingerprint has today."""
    return max(FINGERPRINT_VERSION, _youngest(kind))


@cache
def shapes(kind: type[msgspec.Struct]) -> frozenset[type[msgspec.Struct]]:
    """Return the struct and every struct within its fields."""
    return frozenset(_structs(mi.type_info(kind)))


@cache
def fields_since(kind: type[msgspec.Struct]) -> dict[str, int]:
    """Return a struct's fields in their order, and since which version each is there."""
    info = mi.type_info(kind)
    assert isinstance(info, mi.StructType)  # noqa: S101 - a Struct's info is this
    return {field.encode_name: _since(field.type) for field in info.fields}


@cache
def _youngest(kind: type[msgspec.Struct]) -> int:
    """Return the version of a request's youngest field, nested ones included."""
    return max(since for struct in shapes(kind) for since in fields_since(struct).values())


def _as_of(value: object, version: int) -> object:
    """Return a decoded value without the fields that are younger than a version."""
    if isinstance(value, msgspec.Struct):
        return {
            name: _as_of(getattr(value, name), version)
            for name, since in fields_since(type(value)).items()
            if since <= version and getattr(value, name) is not msgspec.UNSET
        }
    if isinstance(value, list):
        return [_as_of(item, version) for item in value]
    return value


def _since(kind: mi.Type) -> int:
    return (kind.extra or {}).get("since", 1) if isinstance(kind, mi.Metadata) else 1


def _structs(kind: mi.Type) -> Iterator[type[msgspec.Struct]]:
    match kind:
        case mi.Metadata(type=inner) | mi.ListType(item_type=inner):
            yield from _structs(inner)
        case mi.UnionType(types=types):
            for inner in types:
                yield from _structs(inner)
        case mi.StructType(cls=cls, fields=fields):
            yield cls
            for field in fields:
                yield from _structs(field.type)
        case _:
            pass
