"""From facts to the events that the partners concerned are told of."""

from collections.abc import Iterable
from typing import Final

from service.facts.claims import STAGES, ClaimCreated, ClaimStageChanged, DocumentFlagged
from service.facts.connections import (
    ConnectLinkDeclined,
    ConnectLinkRedeemed,
    EntityConnected,
    EntityDisconnected,
)
from service.facts.onboardings import OnboardingCompleted
from service.ledger.events import Event, Recorded
from service.ledger.projector import Insert, Projector, Table, Update, Write
from service.ledger.sql import queries

_SQL = queries("projections.partner_events")

TYPES: Final[dict[type[Event], str]] = {
    ClaimCreated: "claim.created",
    ClaimStageChanged: "claim.stage_changed",
    DocumentFlagged: "claim.document_flagged",
    EntityConnected: "entity.connected",
    EntityDisconnected: "entity.disconnected",
    OnboardingCompleted: "onboarding.completed",
    ConnectLinkRedeemed: "connect_link.redeemed",
    ConnectLinkDeclined: "connect_link.declined",
}
"""What partners are told of each fact that concerns them: the `type` of the event."""

PARTNER_EVENTS = Table(
    "partner_events",
    """
    stream_id uuid, position bigint, partner_id text, type text, at timestamptz, entity_id text,
    claim_id text, stage text, onboarding_id text, link_id text
    """,
)


class PartnerEventsProjector(Projector):
    """Table `partner_events`, which holds ids and stages alone.

    What follows in a claim's stream names no partner: it is that of the claim's creation.
    """

    name = "partner_events"
    version = 1
    tables = (PARTNER_EVENTS,)
    topics = tuple(TYPES)

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes; needs the event's position."""
        match recorded.event:
            case ClaimStageChanged(stage=stage):
                yield _follow(recorded, stage, None)
            case DocumentFlagged(document_id=document_id):
                yield _follow(recorded, None, document_id)
            case ClaimCreated() as event:
                yield _row(recorded, event.partner_id, claim_id=event.claim_id, stage=STAGES[0])
            case EntityConnected() as event:
                source = {_SOURCES[event.via]: event.source_id} if event.via in _SOURCES else {}
                yield _row(recorded, event.partner_id, entity_id=event.entity_id, **source)
            case EntityDisconnected() as event:
                yield _row(recorded, event.partner_id, entity_id=event.entity_id)
            case OnboardingCompleted() as event:
                ids = {"entity_id": event.entity_id, "onboarding_id": event.onboarding_id}
                yield _row(recorded, event.partner_id, **ids)
            case ConnectLinkRedeemed() as event:
                ids = {"entity_id": event.entity_id, "link_id": event.link_id}
                yield _row(recorded, event.partner_id, **ids)
            case ConnectLinkDeclined() as event:
                yield _row(recorded, event.partner_id, link_id=event.link_id)
            case _:
                pass


_SOURCES: Final = {"onboarding": "onboarding_id", "connect_link": "link_id"}
_UNSAID: Final = dict.fromkeys(("entity_id", "claim_id", "stage", "onboarding_id", "link_id"))


def _row(recorded: Recorded, partner_id: str, **said: str | None) -> Insert:
    place = {"stream_id": recorded.stream_id, "position": recorded.position}
    kind = {"type": TYPES[type(recorded.event)], "at": recorded.meta.at}
    return PARTNER_EVENTS.new(
        recorded.event, **_UNSAID | place | kind | {"partner_id": partner_id} | said
    )


def _follow(recorded: Recorded, stage: str | None, document_id: str | None) -> Update:
    kind, at = TYPES[type(recorded.event)], recorded.meta.at
    row = (recorded.stream_id, recorded.position, kind, at, stage, document_id)
    return Update(PARTNER_EVENTS, _SQL.follow, row)
