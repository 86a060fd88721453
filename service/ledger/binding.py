"""Since when a ledger's events have to have a MAC, and what counts as ours (decision 45)."""

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.database import LedgerUnavailable, Row
from service.ledger.event_macs import EventKeys, event_digest

BOUND_TOPIC: Final = "EventsBound"
"""The event that says that every later one has a MAC."""


class UnboundEvent(LedgerUnavailable):
    """A stream has an event that this service did not write. It is about to be set aside."""


class Boundary(NamedTuple):
    """The event after which every other has a MAC; position and append_id 0: since the start."""

    position: int
    append_id: int


SINCE_START: Final = Boundary(0, 0)


def boundary_stream(ledger: str) -> UUID:
    """Return the id of the stream in which a ledger says since when its events are bound."""
    return stream_id("events-bound", ledger)


def boundary_of(ledger: str, keys: EventKeys, rows: Iterable[Row]) -> Boundary | None:
    """Return since when events are bound, given the numbered ones that say so."""
    if keys.since_start:
        return SINCE_START
    stream = boundary_stream(ledger)
    for position, append_id, version, topic, state, mac in rows:
        if keys.holds(event_digest(stream, version, topic, state), mac):
            return Boundary(position, append_id)
    return None


class Binding(NamedTuple):
    """What a ledger's events are told by: the keys, and since when they need a MAC, if they do."""

    ledger: str
    keys: EventKeys
    boundary: Boundary | None

    def check(
        self,
        append_id: int,
        stream: UUID,
        version: int,
        topic: str,
        state: bytes,
        mac: bytes | None,
    ) -> None:
        """Raise UnboundEvent unless this service wrote an event that a command decides on."""
        if not self.is_ours(append_id, stream, version, topic, state, mac):
            raise UnboundEvent(f"version {version} of stream {stream} of {self.ledger}")

    def is_ours(
        self,
        append_id: int,
        stream: UUID,
        version: int,
        topic: str,
        state: bytes,
        mac: bytes | None,
    ) -> bool:
        """Return whether this service wrote an event.

        By the order of appending, as it may have no number yet.
        """
        is_bound = self.boundary is not None and append_id > self.boundary.append_id
        digest = event_digest(stream, version, topic, state)
        return self.keys.is_ours(digest, mac, is_bound=is_bound)

    def check_first(self, stream: UUID, topic: str, row: Row) -> None:
        """Check the event that begins a stream, read as `made_id`, `made` and `made_mac`."""
        self.check(row["made_id"], stream, 1, topic, row["made"], row["made_mac"])
