"""What an event is: a fact, who caused it and why, and where the log keeps it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact, in the past tense. Subclasses are the catalogue's topics.

    `personal` names the fields that are sealed under the subject's data key (decision 5); they are
    optional, and None once that key has been destroyed.

    A change of shape raises `class_version` and adds a static `upcast_v1_v2(data) -> data` that
    turns the decoded fields of the older version into those of the next one: the convention of the
    `eventsourcing` library (decision 7). Old events are never rewritten.
    """

    class_version: ClassVar[int] = 1
    personal: ClassVar[Sequence[str]] = ()


class Cause(msgspec.Struct, frozen=True):
    """Who and why (decision 8).

    `actor` is `partner:<partner id>/<key id>`, `staff:<who>`, `customer:<entity id>` or
    `system:<part>`; `request_id` is that of the answer's X-Request-Id.
    """

    actor: str
    request_id: str


class Meta(msgspec.Struct, frozen=True):
    """What every recorded event says beside its data: when, who, why, and in which ledger."""

    at: datetime
    actor: str
    request_id: str
    mode: str


class Recorded(NamedTuple):
    """An event as the log keeps it."""

    append_id: int
    stream_id: UUID
    version: int
    event: Event
    meta: Meta


Catalogue = Mapping[str, type[Event]]
"""Every topic and its class."""


def upcast(cls: type[Event], data: dict[str, Any], class_version: int) -> dict[str, Any]:
    """Bring decoded fields of an older version to the present one, a version at a time."""
    for version in range(class_version, cls.class_version):
        data = getattr(cls, f"upcast_v{version}_v{version + 1}")(data)
    return data


ERASED = "[erased]"
"""Stands in read models where a person's data was, once their key is destroyed."""
