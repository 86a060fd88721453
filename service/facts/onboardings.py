"""Facts about onboardings: businesses that a partner brings, new to the service."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


class OnboardingStarted(Event, frozen=True):
    """A partner referred a business. Its entity was registered along with it.

    `details` is the request as it was sent (contract 2.1); `fingerprint` a keyed hash of the fields
    that `fingerprint_version` of the request's shape has (service/facts/replays.py).
    `magic_link_hash` is the SHA-256 of the link's token; it and `expires_at` are None in test mode.
    """

    personal: ClassVar = ("details",)
    onboarding_id: str
    entity_id: str
    partner_id: str
    partner_user_id: str
    fingerprint: str
    fingerprint_version: int = 1
    mail_wanted: bool = False
    magic_link_hash: bytes | None = None
    expires_at: datetime | None = None
    details: dict[str, Any] | None = None


class OnboardingCompleted(Event, frozen=True):
    """The person finished an onboarding. From now on the entity counts as using the service.

    `details` is what the person confirmed, if they finished on the page (contract 2.1).
    """

    personal: ClassVar = ("details",)
    onboarding_id: str
    entity_id: str
    partner_id: str
    details: dict[str, Any] | None = None


class OnboardingReplayMismatched(Event, frozen=True):
    """A replay came with a different body. It changed nothing; recorded once for each body."""

    onboarding_id: str
    fingerprint: str


def onboarding_stream(mode: str, epoch: int, partner_id: str, partner_user_id: str) -> UUID:
    """Derive an onboarding's stream from its natural key (decision 1, contract 4.1)."""
    return stream_id("onboarding", mode, str(epoch), partner_id, partner_user_id)
