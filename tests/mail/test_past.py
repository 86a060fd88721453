"""What notices know of a team's past: as it was before any event that is still told."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from service.facts.partners import MemberAdded, MemberRemoved
from service.ledger.events import Meta, Recorded
from service.mail.past import LEFT_KEPT, TEAM, team_before

NO_STREAM = UUID(int=0)
AT = datetime(2026, 3, 8, tzinfo=UTC)


@dataclass
class Stream:
    """A team's stream, as it grows: the events of other topics are left out, and have a number."""

    state: object = field(default_factory=lambda: TEAM.begin)
    version: int = 0

    def happens(self, event, at=AT):
        """Fold an event; return its version."""
        self.version += 2
        meta = Meta(at, "member:one", "req", "accounts")
        self.state = TEAM.fold(self.state, [Recorded(0, NO_STREAM, self.version, event, meta)])
        return self.version

    def team(self, version):
        """Return the addresses of a team as it was before a version."""
        return [one.email for one in team_before(self.state, version).values()]


@pytest.fixture
def stream():
    """Return a stream without events."""
    return Stream()


def added(name):
    """Return what adds a member."""
    return MemberAdded("ptn_1", f"mem_{name}", f"{name}@example.com", name)


def removed(name):
    """Return what removes a member."""
    return MemberRemoved("ptn_1", f"mem_{name}")


def test_a_team_is_known_as_it_was_before_each_event(stream):
    """In the order in which its people joined."""
    first, second = stream.happens(added("first")), stream.happens(added("second"))
    gone, third = stream.happens(removed("first")), stream.happens(added("third"))
    everybody = ["first@example.com", "second@example.com"]
    assert stream.team(first) == []
    assert stream.team(second) == everybody[:1]
    assert stream.team(second + 1) == stream.team(gone) == everybody
    assert stream.team(gone + 1) == stream.team(third) == everybody[1:]
    assert stream.team(third + 1) == ["second@example.com", "third@example.com"]


def test_who_left_long_ago_is_forgotten(stream):
    """However many have been of a team: no notice about it is tried for so long."""
    stream.happens(added("first"))
    gone = stream.happens(removed("first"))
    second = stream.happens(added("second"), AT + LEFT_KEPT - timedelta(seconds=1))
    assert stream.team(gone) == ["first@example.com"]
    stream.happens(added("third"), AT + LEFT_KEPT)
    assert (stream.team(gone), TEAM.parts(stream.state)) == ([], 3)
    assert stream.team(second + 1) == ["second@example.com"]
