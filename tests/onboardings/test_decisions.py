from datetime import UTC, datetime
from uuid import UUID

import pytest

from service.core.errors import Refusal
from service.facts.onboardings import (
    Onboarding,
    OnboardingCompleted,
    OnboardingReplayMismatched,
    OnboardingStarted,
    fold,
)
from service.ledger.events import Meta, Recorded
from service.onboardings import decisions

META = Meta(datetime(2026, 3, 1, tzinfo=UTC), "system:test", "req_1", "live")
STARTED = OnboardingStarted(
    onboarding_id="onb_1",
    entity_id="ent_1",
    partner_id="ptn_1",
    partner_user_id="u",
    fingerprint="",
)
COMPLETED = OnboardingCompleted(onboarding_id="onb_1", entity_id="ent_1", partner_id="ptn_1")


def stream(*events):
    """Return events as a stream of the log."""
    return [Recorded(nr, UUID(int=1), nr, event, META) for nr, event in enumerate(events, 1)]


def test_an_onboarding_is_folded():
    """No stream is no onboarding; a stream knows whether it was finished."""
    assert fold([]) is None
    assert fold(stream(STARTED)) == Onboarding(1, STARTED, False)
    assert fold(stream(STARTED, COMPLETED)) == Onboarding(2, STARTED, True)


def test_a_stream_begins_with_its_start():
    """Another first event is a fault, not an onboarding."""
    with pytest.raises(TypeError):
        fold(stream(OnboardingReplayMismatched(onboarding_id="o", fingerprint="")))


@pytest.mark.parametrize(
    ("events", "expired", "code"),
    [
        ((STARTED, COMPLETED), False, "magic_link_already_used"),
        ((STARTED, COMPLETED), True, "magic_link_already_used"),
        ((STARTED,), True, "magic_link_expired"),
    ],
)
def test_a_link_is_used_once_and_in_time(events, expired, code):
    """A used link says so, also after its time."""
    onboarding = fold(stream(*events))
    with pytest.raises(Refusal) as refused:
        decisions.check_link(onboarding, expired=expired)
    assert refused.value.code == code


def test_a_fresh_link_passes():
    """Before its time is over and before it was used, nothing stands in the way."""
    onboarding = fold(stream(STARTED))
    assert onboarding is not None
    assert decisions.check_link(onboarding, expired=False) is None
