"""What notices know of a stream: states that are kept, with what was, as far as it is still told.

None of them has a test key, or an endpoint of test mode: nobody is told of those.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from service.facts.endpoints import (
    EndpointAdded,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRemoved,
)
from service.facts.partners import ApiKeyIssued, MemberAdded, MemberRemoved, TeamMember
from service.ledger.events import Recorded
from service.ledger.folding import Folding
from service.mail.recipients import PERIOD

LEFT_KEPT: Final = timedelta(days=7)
"""How long it is known who has left a team: a notice is tried for a day."""


class Membership(NamedTuple):
    """A person of a team: from which version of its stream on, and until which, if they left."""

    email: str | None
    since: int
    until: int | None = None
    left_at: datetime | None = None


Memberships = Mapping[str, Membership]
"""By their ids, in the order in which they began."""


def team_before(known: Memberships, version: int) -> dict[str, TeamMember]:
    """Return who was of a team before an event of its stream."""
    return {
        member_id: TeamMember(one.email, None)
        for member_id, one in known.items()
        if one.since < version and (one.until is None or one.until >= version)
    }


def _memberships(before: Memberships, past: Sequence[Recorded]) -> Memberships:
    found = dict(before)
    for one in past:
        match one.event:
            case MemberAdded(member_id=member_id, email=email):
                found[member_id] = Membership(email, one.version)
            case MemberRemoved(member_id=member_id) if member_id in found:
                left = found[member_id]
                found[member_id] = left._replace(until=one.version, left_at=one.meta.at)
            case _:
                pass
    since = past[-1].meta.at - LEFT_KEPT
    return {key: one for key, one in found.items() if one.left_at is None or one.left_at > since}


def _live_keys(before: frozenset[str], past: Sequence[Recorded]) -> frozenset[str]:
    return before | {
        one.event.key_id
        for one in past
        if isinstance(one.event, ApiKeyIssued) and one.event.mode == "live"
    }


class LiveEndpoint(NamedTuple):
    """An endpoint of live mode: why it is disabled, empty if it is not, and its last pauses.

    Of each pause the version of its event and when it was: the last, and those of the day before.
    """

    disabled: str = ""
    pauses: Sequence[tuple[int, datetime]] = ()


LiveEndpoints = Mapping[str, LiveEndpoint]
"""Those that were not removed, by their ids."""


def _live_endpoints(before: LiveEndpoints, past: Sequence[Recorded]) -> LiveEndpoints:
    found = dict(before)
    for one in past:
        match one.event:
            case EndpointAdded(mode="live", endpoint_id=endpoint_id):
                found[endpoint_id] = LiveEndpoint()
            case EndpointRemoved(endpoint_id=endpoint_id):
                found.pop(endpoint_id, None)
            case EndpointEnabled(endpoint_id=endpoint_id) if endpoint_id in found:
                found[endpoint_id] = found[endpoint_id]._replace(disabled="")
            case EndpointDisabled(endpoint_id=endpoint_id) if endpoint_id in found:
                since = one.meta.at - PERIOD
                recent = [pause for pause in found[endpoint_id].pauses if pause[1] > since]
                pauses = (*recent, (one.version, one.meta.at))
                found[endpoint_id] = LiveEndpoint(one.event.reason, pauses)
            case _:
                pass
    return found


def _names(*topics: type) -> list[str]:
    return [topic.__name__ for topic in topics]


TEAM: Final[Folding[Memberships]] = Folding(
    dict[str, Membership](),
    _memberships,
    parts=lambda known: 1 + len(known),
    topics=_names(MemberAdded, MemberRemoved),
)
LIVE_KEYS: Final[Folding[frozenset[str]]] = Folding(
    frozenset[str](),
    _live_keys,
    parts=lambda known: 1 + len(known),
    topics=_names(ApiKeyIssued),
    personal=False,
)
LIVE_ENDPOINTS: Final[Folding[LiveEndpoints]] = Folding(
    dict[str, LiveEndpoint](),
    _live_endpoints,
    parts=lambda known: 1 + sum(1 + len(one.pauses) for one in known.values()),
    topics=_names(EndpointAdded, EndpointDisabled, EndpointEnabled, EndpointRemoved),
    personal=False,
)
