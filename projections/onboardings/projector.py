"""From facts about onboardings to their rows."""

from collections.abc import Iterable

from service.facts.onboardings import OnboardingCompleted, OnboardingStarted
from service.facts.privacy import PersonalDataErased
from service.ledger.events import Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.sql import queries

_SQL = queries("projections.onboardings")

ONBOARDINGS = Table(
    "onboardings",
    """
    onboarding_id text, stream_id uuid, partner_id text, partner_user_id text, entity_id text,
    magic_link_hash bytea, expires_at timestamptz, state text, started_at timestamptz
    """,
)


class OnboardingsProjector(Projector):
    """Table `onboardings`."""

    name = "onboardings"
    version = 1
    tables = (ONBOARDINGS,)
    topics = (OnboardingStarted, OnboardingCompleted, PersonalDataErased)

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case OnboardingStarted() as event:
                yield ONBOARDINGS.new(
                    event,
                    stream_id=recorded.stream_id,
                    state="started",
                    started_at=recorded.meta.at,
                )
            case OnboardingCompleted(onboarding_id=onboarding_id):
                row = (onboarding_id, recorded.meta.at)
                yield Update(ONBOARDINGS, _SQL.complete, row)
            case PersonalDataErased(subject=subject):
                yield Update(ONBOARDINGS, _SQL.forget_link, (subject,))
            case _:
                pass
