"""Who could act, and when: keys, members and staff, from the events of the ledger of accounts.

Times are compared as text, in the form that events have (UTC, from the year down), with a tolerance
of SLACK: a command was admitted a moment before its event, perhaps by another machine's clock.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from service.evidence.rolled_back import rolled_back
from service.ledger.database import Database
from service.ledger.sql import queries

SLACK: Final = timedelta(minutes=5)
"""How long after its end, or before its beginning, a key or person may still be named."""
NEVER: Final = "~"
"""After every time."""
STATEMENT_SECONDS_MAX: Final = 3600.0

_PREFETCH: Final = 500
_SQL = queries("service.evidence.verify")


class Span(NamedTuple):
    """The time within which somebody could act, including SLACK; `ended_at` is the end itself."""

    since: str
    until: str = NEVER
    ended_at: str = NEVER

    def ending(self, at: str) -> "Span":
        """Return it with an end; an earlier one stays."""
        return self if at >= self.ended_at else self._replace(until=_moved(at, SLACK), ended_at=at)


class KnownKey(NamedTuple):
    """A key: whose it is, of which mode, and when it worked."""

    partner_id: str
    mode: str
    span: Span


class _Meta(msgspec.Struct):
    at: str


class _Data(msgspec.Struct):
    partner_id: str = ""
    key_id: str = ""
    mode: str = ""
    member_id: str = ""
    person_id: str | None = None
    staff_id: str = ""
    effective_at: str | None = None


class _Fact(msgspec.Struct):
    meta: _Meta
    data: _Data


@dataclass(slots=True)
class KnownActors:
    """All keys, members and members of staff that ever existed: about 400 bytes each.

    `members` are by person. `unnamed` are those whose event does not name the person: in events of
    earlier releases, it is encrypted.
    """

    keys: dict[str, KnownKey] = field(default_factory=dict[str, KnownKey])
    revoked: dict[str, str] = field(default_factory=dict[str, str])
    staff: dict[str, Span] = field(default_factory=dict[str, Span])
    members: dict[str, dict[str, Span]] = field(default_factory=dict[str, dict[str, Span]])
    unnamed: dict[str, Span] = field(default_factory=dict[str, Span])
    _person_of: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, topic: str, state: bytes) -> None:
        """Take the next event of the ledger of accounts; a damaged one is ignored."""
        try:
            fact = _decoder.decode(state)
            at, data = _moved(fact.meta.at), fact.data
            match topic:
                case "ApiKeyIssued":
                    self.keys[data.key_id] = KnownKey(data.partner_id, data.mode, _span(at))
                case "ApiKeyRevoked":
                    key = self.keys[data.key_id]
                    ended = key.span.ending(_moved(data.effective_at or at))
                    self.keys[data.key_id] = key._replace(span=ended)
                case "PartnerRevoked":
                    self.revoked.setdefault(data.partner_id, at)
                case "StaffAdded":
                    self.staff[data.staff_id] = _span(at)
                case "StaffRemoved":
                    self.staff[data.staff_id] = self.staff[data.staff_id].ending(at)
                case "MemberAdded":
                    self._spans_of(data.member_id, data.person_id)[data.member_id] = _span(at)
                case "MemberRemoved":
                    spans = self._spans_of(data.member_id, self._person_of.get(data.member_id))
                    spans[data.member_id] = spans[data.member_id].ending(at)
                case _:
                    pass
        except (msgspec.MsgspecError, ValueError, KeyError):
            return

    def key(self, key_id: str) -> KnownKey | None:
        """Return a key; its end is that of its partner's access where that came first."""
        key = self.keys.get(key_id)
        ended_at = None if key is None else self.revoked.get(key.partner_id)
        if key is None or ended_at is None:
            return key
        return key._replace(span=key.span.ending(ended_at))

    def _spans_of(self, member_id: str, person_id: str | None) -> dict[str, Span]:
        if person_id is None:
            return self.unnamed
        self._person_of[member_id] = person_id
        return self.members.setdefault(person_id, {})


_decoder = msgspec.json.Decoder(_Fact)
TOPICS: Final = (
    *("ApiKeyIssued", "ApiKeyRevoked", "PartnerRevoked", "StaffAdded", "StaffRemoved"),
    *("MemberAdded", "MemberRemoved"),
)


async def known_actors(accounts: Database, deadline_seconds: float) -> KnownActors:
    """Read who could act; call it after the snapshot to compare with was taken.

    Everybody who acts in the snapshot is then known. Raises LedgerUnavailable.
    """
    known = KnownActors()
    async with (
        accounts.background.connection(deadline_seconds) as connection,
        rolled_back(connection, seconds_max=STATEMENT_SECONDS_MAX, readonly=True),
    ):
        sql = _SQL.people.on(accounts.schema)
        async for topic, state in connection.cursor(sql, list(TOPICS), prefetch=_PREFETCH):
            known.take(topic, state)
    return known


def _span(at: str) -> Span:
    return Span(_moved(at, -SLACK))


def _moved(at: str, by: timedelta = timedelta()) -> str:
    """Return a time that much later, in the form in which events have theirs."""
    moved = msgspec.convert(at, datetime) + by
    return moved.isoformat().replace("+00:00", "Z")
