"""What an event is: a fact, who caused it and why, and its place in the log."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact, in the past tense. Subclasses are the catalogue's topics.

    `personal` names the fields that are sealed under the subject's data key (decision 8); they are
    optional, and None once that key has been destroyed.

    A change of shape raises `class_version` and adds a static `upcast_v1_v2(data) -> data` that
    turns the decoded fields of the older version into those of the next one: the convention of the
    `eventsourcing` library. Old events are never rewritten.
    """

    class_version: ClassVar[int] = 1
    personal: ClassVar[Sequence[str]] = ()


class Cause(msgspec.Struct, frozen=True):
    """Who and why (decision 7).

    `actor` is `partner:<partner id>/<key id>`, `member:<person id>`, `staff:<staff id>`,
    `customer:<entity id>` or `system:<part>`; `request_id` is that of the answer's X-Request-Id.
    """

    actor: str
    request_id: str


class Meta(msgspec.Struct, frozen=True):
    """What every event records besides its data: when, who, why, and in which ledger."""

    at: datetime
    actor: str
    request_id: str
    mode: str


class Recorded(msgspec.Struct, frozen=True):
    """An event as the log keeps it. `position` is 0 if it was not read from the log."""

    append_id: int
    stream_id: UUID
    version: int
    event: Event
    meta: Meta
    position: int = 0


Catalogue = Mapping[str, type[Event]]
"""Every topic and its class."""


class Unreadable(Exception):
    """A stored event that this release cannot read. str() names it and the fault, and no data."""

    def __init__(self, fault: str, place: str = "an event") -> None:
        super().__init__(f"{place} cannot be read: {fault}")
        self.fault = fault
        self.place = place

    def __reduce__(self) -> tuple[type["Unreadable"], tuple[str, str]]:
        """Return how another process makes it again."""
        return Unreadable, (self.fault, self.place)

    def at(self, ledger: str, stream_id: UUID, version: int, position: int = 0) -> "Unreadable":
        """Return the fault with its place: the position in the log if that is known."""
        stream = f"version {version} of stream {stream_id}" if version else f"stream {stream_id}"
        place = f"position {position}" if position else stream
        return Unreadable(self.fault, f"{place} of {ledger}")


def upcast(cls: type[Event], data: dict[str, Any], class_version: int) -> dict[str, Any]:
    """Return decoded fields of an older version in the shape of the present one.

    Raises Unreadable if a later release wrote it, or an upcast is missing.
    """
    if class_version > cls.class_version:
        raise Unreadable(f"{cls.__name__} of version {class_version}: later than ours")
    for version in range(class_version, cls.class_version):
        step = getattr(cls, f"upcast_v{version}_v{version + 1}", None)
        if step is None:
            raise Unreadable(f"{cls.__name__} of version {class_version}: no upcast")
        data = step(data)
    return data


ERASED = "[erased]"
"""Stands in read models where a person's data was, once their key is destroyed."""

KEY_MISSING = "[key missing]"
"""Shown if a person's data cannot be read although nobody erased it: its key is missing."""
