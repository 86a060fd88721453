"""What a rebuild puts aside, as a follower does: bad events, and what follows in their streams."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from service.ledger.decoding import Unread
from service.ledger.events import Recorded
from service.ledger.following.parking import FOLLOWS


class SkippedEvent(NamedTuple):
    """An event that is not among the rebuilt rows. `fault` quotes nothing of it.

    `position` is 0 before it has one.
    """

    position: int
    stream_id: UUID
    fault: str


class SkippedEvents:
    """Collects them, in the order of the log."""

    def __init__(
        self, *, is_allowed: bool, events: Sequence[SkippedEvent] = (), streams: Iterable[UUID] = ()
    ) -> None:
        """`is_allowed` False: a bad event ends the rebuild instead. `streams` are aside already."""
        self.is_allowed = is_allowed
        self.events = list(events)
        self._streams = set(streams)

    def copy(self) -> "SkippedEvents":
        """Return what it is now, for a transaction that may be rolled back."""
        return SkippedEvents(is_allowed=self.is_allowed, events=self.events, streams=self._streams)

    def take(self, event: Recorded | Unread, fault: str) -> None:
        """Put an event aside."""
        self.events.append(SkippedEvent(event.position, event.stream_id, fault))
        self._streams.add(event.stream_id)

    def follows(self, event: Recorded | Unread) -> bool:
        """Return whether its stream is aside already; then the event is, too."""
        if event.stream_id not in self._streams:
            return False
        self.take(event, FOLLOWS)
        return True
