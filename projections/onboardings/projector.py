"""From facts about onboardings to their rows."""

from collections.abc import Iterable
from typing import ClassVar

from service.facts.onboardings import OnboardingCompleted, OnboardingStarted
from service.facts.privacy import PersonalDataErased
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("projections.onboardings")


class OnboardingsProjector:
    """Table `onboardings`."""

    name = "onboardings"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("onboardings",)
    topics: ClassVar[tuple[type[Event], ...]] = (
        OnboardingStarted,
        OnboardingCompleted,
        PersonalDataErased,
    )
    reads_personal = False

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case OnboardingStarted() as event:
                yield Write(
                    _SQL.insert,
                    (
                        event.onboarding_id,
                        recorded.stream_id,
                        event.partner_id,
                        event.partner_user_id,
                        event.entity_id,
                        event.magic_link_hash,
                        event.expires_at,
                        "started",
                        recorded.meta.at,
                    ),
                )
            case OnboardingCompleted(onboarding_id=onboarding_id):
                yield Write(_SQL.complete, (onboarding_id, recorded.meta.at))
            case PersonalDataErased(subject=subject):
                yield Write(_SQL.forget_link, (subject,))
            case _:
                pass
