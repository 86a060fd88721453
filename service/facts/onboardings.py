"""Facts about onboardings: businesses that a partner brings, new to the service."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event, Recorded


class OnboardingStarted(Event, frozen=True):
    """A partner referred a business. Its entity was registered along with it.

    `details` is the request as it was sent (contract 2.1); `fingerprint` a keyed hash of the fields
    that `fingerprint_version` of the request's shape has (service/facts/replays.py).
    `magic_link_hash` is the SHA-256 of the link's token; it and `expires_at` are None in test mode.
    `link_returned`: whether the partner got the link, too; None in older events, which do not tell.
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
    link_returned: bool | None = None
    details: dict[str, Any] | None = None


class OnboardingCompleted(Event, frozen=True):
    """The person finished an onboarding. From now on the entity counts as using the service.

    `details` is what the person confirmed, if they finished on the page (contract 2.1).
    `proved_by` is how they proved to read mail at the onboarding's address: `mailed_link` or
    `sign_in`; None in older events, for which a link that the partner had was enough.
    """

    personal: ClassVar = ("details",)
    onboarding_id: str
    entity_id: str
    partner_id: str
    proved_by: str | None = None
    details: dict[str, Any] | None = None


class OnboardingReplayMismatched(Event, frozen=True):
    """A replay had a different body. It changed nothing, and is recorded once for each body."""

    onboarding_id: str
    fingerprint: str


class Onboarding(NamedTuple):
    """An onboarding's state, folded from its stream."""

    version: int
    started: OnboardingStarted
    completed: bool


def fold(stream: Sequence[Recorded]) -> Onboarding | None:
    """Fold a stream into an onboarding; None for an empty stream."""
    if not stream:
        return None
    started = stream[0].event
    if not isinstance(started, OnboardingStarted):
        raise TypeError(f"{type(started).__name__} does not begin an onboarding")
    completed = any(isinstance(recorded.event, OnboardingCompleted) for recorded in stream)
    return Onboarding(len(stream), started, completed)


def onboarding_stream(mode: str, epoch: int, partner_id: str, partner_user_id: str) -> UUID:
    """Derive an onboarding's stream from its natural key (decision 1, contract 4.1)."""
    return stream_id("onboarding", mode, str(epoch), partner_id, partner_user_id)
