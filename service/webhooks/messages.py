"""The messages that endpoints get: a partner's events, as `GET /v1/events` returns them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from projections.partner_events.reader import PartnerEventsReader
from service.core.clock import timestamp
from service.core.ids import derived_id
from service.events.cloud_events import cloud_event, source_of
from service.events.wire import TEST_EVENT, CloudEvent, EventData
from service.facts.caller import Mode


class Message(NamedTuple):
    """An event as it is sent. What is about the same `subject` is delivered in order."""

    position: int
    type: str
    subject: str
    id: str
    body: str


@dataclass(frozen=True, slots=True)
class Messages:
    """Makes the messages of one mode."""

    events: PartnerEventsReader
    public_url: str
    mode: Mode

    async def after(self, partner_id: str, position: int, limit: int) -> Sequence[Message]:
        """Return a partner's first events beyond a position, without a gap."""
        page = await self.events.page(partner_id, position, limit)
        source = source_of(self.public_url, self.mode)
        return [_message(one.position, cloud_event(one, source)) for one in page.events]

    def test(self, endpoint_id: str, position: int, at: datetime) -> Message:
        """Return the test event that a member asked for; it has no place in a log."""
        event = CloudEvent(
            id=derived_id("evt", "test", endpoint_id, str(position)),
            source=source_of(self.public_url, self.mode),
            type=TEST_EVENT,
            subject=endpoint_id,
            time=timestamp(at),
            sequence="0",
            data=EventData(),
        )
        return _message(position, event)


def _message(position: int, event: CloudEvent) -> Message:
    subject = event.subject or f"position {position}"
    return Message(position, event.type, subject, event.id, msgspec.json.encode(event).decode())
