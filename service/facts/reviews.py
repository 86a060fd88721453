"""Facts about the team's review of a partner, which partners never see; the state folded from them.

A stream of its own: what the console reads of a partner has nothing of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Final, NamedTuple
from uuid import UUID

import msgspec

from service.core.ids import stream_id
from service.ledger.events import Event, Recorded

CHECKS: Final = ("website", "register", "email_domain", "contact")
"""What the team may have looked at: the website opened, the company register looked up, the
contact's domain compared with the website's, the contact reached by a way found elsewhere."""


class PartnerReviewed(Event, frozen=True):
    """The team recorded its checks of a partner; the fields are the new values.

    `checks` are of CHECKS, in their order. `note` is for the team alone, and encrypted under the
    partner's key; empty for none.
    """

    personal: ClassVar = ("note",)
    partner_id: str
    checks: Sequence[str] = ()
    note: str | None = None


class By(NamedTuple):
    """Who did something, as events name them, and when."""

    actor: str
    at: datetime


class Review(msgspec.Struct, frozen=True):
    """The review of a partner, with who ticked each check, and who wrote the note.

    `note` is None where there is none, or the partner's data was erased.
    """

    version: int = 0
    checks: Mapping[str, By] = msgspec.field(default_factory=dict[str, By])
    note: str | None = None
    noted: By | None = None


def review_stream(partner_id: str) -> UUID:
    """Return the id of the stream of a partner's review."""
    return stream_id("review", partner_id)


def fold(past: Iterable[Recorded]) -> Review:
    """Fold the stream of a partner's review into its state."""
    state = Review()
    for one in past:
        if not isinstance(one.event, PartnerReviewed):
            raise TypeError(f"{type(one.event).__name__} is not a fact about a review")
        event, by = one.event, By(one.meta.actor, one.meta.at)
        note = event.note or None
        state = Review(
            version=state.version + 1,
            checks={check: state.checks.get(check, by) for check in event.checks},
            note=note,
            noted=state.noted if note == state.note else by,
        )
    return state
