"""From facts about onboardings to their rows."""

from collections.abc import Iterable
from typing import ClassVar

from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql
from service.onboardings.events import OnboardingCompleted, OnboardingStarted
from service.privacy.events import PersonalDataErased

_INSERT = Sql("projections.onboardings", "insert")
_COMPLETE = Sql("projections.onboardings", "complete")
_FORGET_LINK = Sql("projections.onboardings", "forget_link")


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
        """Answer what this event changes."""
        match recorded.event:
            case OnboardingStarted() as event:
                yield Write(
                    _INSERT,
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
                yield Write(_COMPLETE, (onboarding_id, recorded.meta.at))
            case PersonalDataErased(subject=subject):
                yield Write(_FORGET_LINK, (subject,))
            case _:
                pass
