"""Who could act, and when: keys, members and staff, from the events of the ledger of accounts.

Times are compared as text, in the form that events have (UTC, from the year down), with a tolerance
of SLACK: a command was admitted a moment before its event, perhaps by another machine's clock.
"""

from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from service.evidence.checkpoint import NOTE_BYTES_MAX, Checkpoint
from service.evidence.lineages import Lineages, lineages_of
from service.evidence.note import NoteInvalid, NoteKey
from service.evidence.replay.footing import binds
from service.evidence.rolled_back import rolled_back
from service.ledger.binding import BOUND_TOPIC, binding_of, boundary_stream
from service.ledger.database import Connection, Database, Row
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.event_macs import EventKeys
from service.ledger.sql import queries

SLACK: Final = timedelta(minutes=5)
"""How long after its end, or before its beginning, a key or person may still be named."""
NEVER: Final = "~"
"""After every time."""
STATEMENT_SECONDS_MAX: Final = 3600.0

STATE_BYTES_MAX: Final = 16 << 10
"""More than the service writes of anybody: a longer event says nothing of who could act."""
UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)
"""What reading an event raises that is none: JSON can be too deep, too."""

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_ROWS_MAX: Final = PAGE_BYTES_MAX // STATE_BYTES_MAX
_CHECKPOINTS_MAX: Final = 1_000
"""Whoever has the login can store more of larger sizes, without a signature that holds."""
_SQL = queries("service.evidence.verify")
_BOUND = queries("service.ledger").bound


class Accounts(NamedTuple):
    """The ledger of accounts; without its `keys`, nobody knows who wrote what it says."""

    database: Database
    keys: EventKeys | None = None


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
    earlier releases, it is encrypted. `unproven` events that no signed checkpoint covers have made
    somebody known, and nobody has checked who wrote them.
    """

    keys: MutableMapping[str, KnownKey] = field(default_factory=dict[str, KnownKey])
    revoked: MutableMapping[str, str] = field(default_factory=dict[str, str])
    staff: MutableMapping[str, Span] = field(default_factory=dict[str, Span])
    members: MutableMapping[str, dict[str, Span]] = field(
        default_factory=dict[str, dict[str, Span]]
    )
    unnamed: MutableMapping[str, Span] = field(default_factory=dict[str, Span])
    _person_of: MutableMapping[str, str] = field(default_factory=dict[str, str])
    unproven: int = 0

    def continued(self) -> "KnownActors":
        """Return another that knows the same, and leaves this one as it is."""
        return KnownActors(
            ChainMap({}, self.keys),
            ChainMap({}, self.revoked),
            ChainMap({}, self.staff),
            ChainMap({}, self.members),
            ChainMap({}, self.unnamed),
            ChainMap({}, self._person_of),
        )

    def take(self, topic: str, state: bytes) -> None:
        """Take the next event of the ledger of accounts; a damaged one is ignored.

        Nobody begins twice: ids are drawn anew.
        """
        try:
            fact = _decoder.decode(state)
            at, data = _moved(fact.meta.at), fact.data
            match topic:
                case "ApiKeyIssued":
                    key = KnownKey(data.partner_id, data.mode, _span(at))
                    self.keys.setdefault(data.key_id, key)
                case "ApiKeyRevoked":
                    key = self.keys[data.key_id]
                    ended = key.span.ending(_moved(data.effective_at or at))
                    self.keys[data.key_id] = key._replace(span=ended)
                case "PartnerRevoked":
                    self.revoked.setdefault(data.partner_id, at)
                case "StaffAdded":
                    self.staff.setdefault(data.staff_id, _span(at))
                case "StaffRemoved":
                    self.staff[data.staff_id] = self.staff[data.staff_id].ending(at)
                case "MemberAdded":
                    self._add_member(data.member_id, data.person_id, _span(at))
                case "MemberRemoved":
                    self._remove_member(data.member_id, at)
                case _:
                    pass
        except (*UNREADABLE, KeyError):
            return

    def key(self, key_id: str) -> KnownKey | None:
        """Return a key; its end is that of its partner's access where that came first."""
        key = self.keys.get(key_id)
        ended_at = None if key is None else self.revoked.get(key.partner_id)
        if key is None or ended_at is None:
            return key
        return key._replace(span=key.span.ending(ended_at))

    def _add_member(self, member_id: str, person_id: str | None, span: Span) -> None:
        if member_id in self._person_of or member_id in self.unnamed:
            return
        if person_id is None:
            self.unnamed[member_id] = span
            return
        self._person_of[member_id] = person_id
        # Another dict, never the same one: what this goes on from has it, too.
        self.members[person_id] = {**self.members.get(person_id, {}), member_id: span}

    def _remove_member(self, member_id: str, at: str) -> None:
        person_id = self._person_of.get(member_id)
        if person_id is None:
            self.unnamed[member_id] = self.unnamed[member_id].ending(at)
            return
        spans = self.members[person_id]
        self.members[person_id] = {**spans, member_id: spans[member_id].ending(at)}


_decoder = msgspec.json.Decoder(_Fact)
_BEGINNINGS: Final = ("ApiKeyIssued", "StaffAdded", "MemberAdded")
TOPICS: Final = (
    *_BEGINNINGS,
    *("ApiKeyRevoked", "PartnerRevoked", "StaffRemoved", "MemberRemoved"),
)


async def known_actors(
    accounts: Accounts, keys_of_notes: Sequence[NoteKey], deadline_seconds: float
) -> KnownActors:
    """Read who could act; call it after the snapshot to compare with was taken.

    Everybody who acts in the snapshot is then known. Only what this service wrote counts. Without
    keys to tell, that is what a checkpoint covers that `keys_of_notes` verify: before one is
    signed, MACs are checked. What comes later may make somebody known, and end nobody's access.
    Raises LedgerUnavailable.
    """
    known, (database, keys) = KnownActors(), accounts
    schema = database.schema
    async with (
        database.background.connection(deadline_seconds) as connection,
        rolled_back(connection, seconds_max=STATEMENT_SECONDS_MAX, readonly=True),
    ):
        said = await connection.fetch(_BOUND.on(schema), boundary_stream(schema), BOUND_TOPIC)
        binding = None if keys is None else binding_of(schema, keys, said)
        proven = 0
        if keys is None:
            lineages = await lineages_of(connection, schema, keys_of_notes)
            proven = await proven_size(connection, schema, keys_of_notes, lineages)
        cursor = await connection.cursor(_SQL.people.on(schema), list(TOPICS), STATE_BYTES_MAX)
        while rows := await cursor.fetch(_ROWS_MAX):
            counted = _by_checkpoint(rows, known, proven) if binding is None else binding.ours(rows)
            for row in counted:
                known.take(row["topic"], row["state"])
    return known


async def proven_size(
    connection: Connection, schema: str, keys: Sequence[NoteKey], lineages: Lineages
) -> int:
    """Return the size of the largest checkpoint that is signed and binds the log."""
    asked = (_CHECKPOINTS_MAX, NOTE_BYTES_MAX)
    for size, origin, note in await connection.fetch(_SQL.people_signed.on(schema), *asked):
        with suppress(NoteInvalid):
            checkpoint = Checkpoint.open(note, keys)
            is_it = (checkpoint.size, checkpoint.origin) == (size, origin)
            if is_it and binds(lineages, origin, size):
                return checkpoint.size
    return 0


def _by_checkpoint(rows: Sequence[Row], known: KnownActors, proven: int) -> list[Row]:
    """Return those of some rows that count where a checkpoint covers the first so many."""
    counted = list[Row]()
    for row in rows:
        is_proven = 0 < (row["position"] or 0) <= proven
        if is_proven or row["topic"] in _BEGINNINGS:
            known.unproven += not is_proven
            counted.append(row)
    return counted


def _span(at: str) -> Span:
    return Span(_moved(at, -SLACK))


def _moved(at: str, by: timedelta = timedelta()) -> str:
    """Return a time that much later, in the form in which events have theirs.

    An event may have any time that there is, and then this ends with the first or the last one.
    """
    moment = msgspec.convert(at, datetime)
    try:
        moved = moment + by
    except OverflowError:
        moved = _FIRST if by < timedelta() else _LAST
    return moved.isoformat().replace("+00:00", "Z")
