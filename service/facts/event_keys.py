"""Facts about the keys by which events are bound to this service."""

from datetime import datetime
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


class EventKeyAdded(Event, frozen=True):
    """The team had another event key drawn, which makes the MACs of events from `signs_from` on."""

    event_key: int
    signs_from: datetime


def event_key_stream(event_key: int) -> UUID:
    """Return the id of the stream of an event key: each is drawn once."""
    return stream_id("event-key", str(event_key))
