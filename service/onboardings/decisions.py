"""What may happen to an onboarding. Pure: no I/O."""

from collections.abc import Sequence
from typing import NamedTuple

from service.core.errors import Refusal
from service.facts.onboardings import OnboardingCompleted, OnboardingStarted
from service.ledger.events import Recorded


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
    completed = any(isinstance(one.event, OnboardingCompleted) for one in stream)
    return Onboarding(len(stream), started, completed)


def check_link(onboarding: Onboarding, *, expired: bool) -> None:
    """Refuse a magic link that was used or has expired."""
    if onboarding.completed:
        raise Refusal("magic_link_already_used")
    if expired:
        raise Refusal("magic_link_expired")
