"""A partner's events after a position, as webhooks and `GET /v1/events` read them."""

from datetime import datetime
from typing import NamedTuple

import msgspec

from service.ledger.database import Reader
from service.ledger.following.parking import NOT_OURS
from service.ledger.sql import queries

_SQL = queries("projections.partner_events")


class PartnerEvent(NamedTuple):
    """An event as its partner may see it now.

    `leaf_hash` is that of the log. `entity_id` is None unless the partner has used that id itself
    (contract section 1); `onboarding_id` or `link_id` is then what brought the entity.
    """

    position: int
    leaf_hash: bytes
    type: str
    at: datetime
    claim_id: str | None
    stage: str | None
    previous_stage: str | None
    document_id: str | None
    onboarding_id: str | None
    link_id: str | None
    partner_claim_id: str | None
    partner_user_id: str | None
    entity_id: str | None


class EventPage(NamedTuple):
    """A page of events. `after_hash` is the leaf hash of the event that it follows, if any.

    A log that was restored to an earlier state has another one there, or none.
    """

    after_hash: bytes | None
    events: list[PartnerEvent]


class PartnerEventsReader(Reader):
    """Reads `partner_events` of one ledger. It has no gap below the events that it returns."""

    async def page(self, partner_id: str, after: int, limit: int) -> EventPage:
        """Return a partner's first events beyond a position, at most `limit`, oldest first."""
        named = msgspec.json.encode(partner_id)  # as it stands in a stored event
        rows = await self._reads.fetch(_SQL.page, partner_id, after, limit, named, NOT_OURS)
        found = [PartnerEvent(*row[1:]) for row in rows if row["position"] is not None]
        return EventPage(rows[0]["after_hash"], found)
