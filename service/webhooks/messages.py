"""The messages that endpoints get: a partner's events, as `GET /v1/events` returns them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from projections.partner_events.reader import PartnerEvent, PartnerEventsReader
from service.core.clock import timestamp
from service.core.ids import derived_id
from service.events.cloud_events import cloud_event, source_of
from service.events.wire import TEST_EVENT, CloudEvent, EventData
from service.facts.caller import Mode
from service.facts.connections import connection_stream


class Message(NamedTuple):
    """An event as it is sent. What has the same `line` is delivered in order.

    That is the id of the claim or link that it is about; for a connection, and for the onboardings
    and links that made it, a name of the connection, which no partner is shown. An earlier release
    queued those by `subject`, which is None where an event has none.
    """

    position: int
    type: str
    line: str
    subject: str | None
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
        return [self._message(partner_id, one, cloud_event(one, source)) for one in page.events]

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
        return _message(position, endpoint_id, event)

    def _message(self, partner_id: str, event: PartnerEvent, told: CloudEvent) -> Message:
        line = told.subject or told.id
        if event.connected_id is not None:
            line = f"connection {connection_stream(self.mode, partner_id, event.connected_id)}"
        return _message(event.position, line, told)


def _message(position: int, line: str, event: CloudEvent) -> Message:
    body = msgspec.json.encode(event).decode()
    return Message(position, event.type, line, event.subject or None, event.id, body)
