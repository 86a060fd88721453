"""A partner's events after a position, as webhooks and `GET /v1/events` read them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from service.ledger.database import Reader
from service.ledger.following.parking import NOT_OURS
from service.ledger.sql import queries

BROUGHT_MAX: Final = 200
"""Events of a connection among which is looked for what brought the entity."""

_SQL = queries("projections.partner_events")


class PartnerEvent(NamedTuple):
    """An event as its partner may see it now.

    `leaf_hash` is that of the log. `entity_id` is None unless the partner has used that id itself
    (contract section 1); `onboarding_id` or `link_id` is then what brought the entity, if anything
    did. `connected_id` is the entity's all the same, where the event is about its connection: it
    puts such events in order, and is not for the partner.
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
    connected_id: str | None


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
        rows = await self._reads.fetch(
            _SQL.page, partner_id, after, limit, named, NOT_OURS, BROUGHT_MAX
        )
        found = [PartnerEvent(*row[1:]) for row in rows if row["position"] is not None]
        return EventPage(rows[0]["after_hash"], found)

    async def about(self, partner_id: str, positions: Sequence[int]) -> dict[int, str | None]:
        """Return what a partner's events at some positions are about: an id, None if none is said.

        Positions without such an event are left out.
        """
        rows = await self._reads.fetch(_SQL.about, partner_id, [*positions], BROUGHT_MAX)
        return {row["position"]: row["about"] for row in rows}
