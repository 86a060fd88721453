"""What commands and pages know of a partner's stream: its state, and who decided on it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from service.facts.changes import Budgets
from service.facts.partners import (
    ApiKeyIssued,
    MemberAdded,
    Partner,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
    PartnerWebsiteVerified,
    SandboxReset,
    fold,
)
from service.facts.reviews import By
from service.ledger.events import Event, Recorded
from service.ledger.folding import Folding

COUNTED: Final = (PartnerSettingsChanged, SandboxReset, ApiKeyIssued, MemberAdded)
"""The changes of which a partner's people can make so many a day: one of these in each."""

_DECIDED: Final[Mapping[type[Event], str]] = {
    PartnerApproved: "approved",
    PartnerDeclined: "declined",
    PartnerRevoked: "revoked",
    PartnerWebsiteVerified: "website",
}


class Decision(NamedTuple):
    """What a partner's status became, or `website` for its verification; and who decided it."""

    status: str
    by: By


class Past(NamedTuple):
    """A partner, the decisions on it, oldest first, and what its people have changed of late."""

    partner: Partner
    decisions: Sequence[Decision] = ()
    changes: Budgets = Budgets()
    settings_changed: bool = False


def proven(before: Partner, events: Iterable[Event]) -> Iterator[bool]:
    """Return of each event whether its page asks for a fresh proof of who makes the change."""
    url = before.return_url
    for event in events:
        match event:
            case PartnerSettingsChanged():
                yield event.return_url != url
                url = event.return_url
            case ApiKeyIssued():
                yield event.mode == "live"
            case _:
                yield isinstance(event, MemberAdded)


def _fold(before: Past, past: Sequence[Recorded]) -> Past:
    decided = [
        Decision(_DECIDED[type(one.event)], By(one.meta.actor, one.meta.at))
        for one in past
        if type(one.event) in _DECIDED
    ]
    events = [one.event for one in past]
    return Past(
        fold(events, before.partner),
        (*before.decisions, *decided),
        before.changes.after(past, COUNTED, [*proven(before.partner, events)]),
        before.settings_changed
        or any(isinstance(event, PartnerSettingsChanged) for event in events),
    )


def _parts(past: Past) -> int:
    partner = past.partner
    return 10 + len(partner.keys) + len(partner.members) + len(past.decisions)


PAST: Final = Folding(Past(Partner()), _fold, _parts)
"""How all who read a partner's stream fold it, so that they share what is kept."""
