"""An event as partners get it: by `GET /v1/events` and by webhooks, made in one place."""

from msgspec import UNSET

from projections.partner_events.reader import PartnerEvent
from service.core.clock import timestamp
from service.core.ids import base32
from service.events.wire import CloudEvent, EventData
from service.facts.caller import Mode


def source_of(public_url: str, mode: Mode) -> str:
    """Return the `source` of a mode's events: the API's address, in test mode with `?mode=test`."""
    return f"{public_url}/v1" if mode == "live" else f"{public_url}/v1?mode=test"


def event_id(leaf_hash: bytes) -> str:
    """Return an event's id: the first half of its leaf hash, by which a receipt proves it.

    It is the same for ever, and another where a restored log has another event in the same place.
    """
    return f"evt_{base32(int.from_bytes(leaf_hash[:16], 'big'))}"


def cloud_event(event: PartnerEvent, source: str) -> CloudEvent:
    """Return an event in the form of CloudEvents 1.0 (structured JSON)."""
    return CloudEvent(
        id=event_id(event.leaf_hash),
        source=source,
        type=event.type,
        subject=event.claim_id or event.onboarding_id or event.link_id or UNSET,
        time=timestamp(event.at),
        sequence=str(event.position),
        data=EventData(
            claim_id=event.claim_id,
            entity_id=event.entity_id,
            partner_claim_id=event.partner_claim_id,
            partner_user_id=event.partner_user_id,
            stage=event.stage,
            previous_stage=event.previous_stage,
            document_id=event.document_id,
            onboarding_id=event.onboarding_id,
            link_id=event.link_id,
        ),
    )
