"""Checking the actors of a log's events: each key and person existed and could act.

Whoever can forge a whole event can name anybody as its actor, even somebody whose access has ended.
An event is judged by its own time. Where its actor's time has an end, the median of the times of
the events before it, if it is later, has to be within that time, too. So from the third event of a
log on, nobody whose access has ended gains by backdating one, and a wrong clock that dated fewer
than half of these has no effect on the others. What it dated itself is judged by that.
Positions can be given late, so what fails by those before it is only a `Late` one, and is judged
again by the events that were appended before it (late_actors.py).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import msgspec

from service.evidence.verdict import Fault
from service.evidence.verify.actor_faults import UNREGISTERED, ActorFaults, Late, actor_fault, shown
from service.evidence.verify.known_actors import NEVER, UNREADABLE, KnownActors, Span
from service.evidence.verify.rows import LogRow
from service.facts.entities import entity_stream

BEFORE_MAX: Final = 31
"""Of so many events before one, the middle time counts; of fewer where there are fewer."""
BEFORE_MIN: Final = 2
"""Of these, the earlier time counts: a single event may be one of a wrong clock."""
LATE_MAX: Final = 1000
"""More events that seem to be late are faults without another look, of each part of a log."""
ENTITIES_LATE_MAX: Final = 4096
"""An entity that acts may be registered by the same transaction, and numbered a little later."""
ALL_PROVEN: Final = (1 << 63) - 1
"""The last position: whoever wrote an event is checked, wherever it is."""
SYSTEM: Final = frozenset(
    {"checkpoints", "dev", "documents", "installation", "sandbox", "webhooks"}
)
"""The parts of the service that append events by themselves."""

FORMER: Final = frozenset({"staff:cli"})
"""Actors that name no particular person; earlier releases recorded them, in events without MACs."""

REBOUND: Final = "ApiKeyRebound"
"""All that keys, of both modes, do in the ledger of accounts: each binds its own hash."""


class _Meta(msgspec.Struct):
    at: str
    actor: str


class _Who(msgspec.Struct):
    meta: _Meta


class _Key(msgspec.Struct):
    partner_id: str
    key_id: str


class _OfKey(msgspec.Struct):
    data: _Key


class _Waiting(NamedTuple):
    position: int
    actor: str
    stream: UUID


_OF_KEY: Final = msgspec.json.Decoder(_OfKey)
WHO: Final = msgspec.json.Decoder(_Who)
"""Reads of an event who did something, and when."""


class Begun(Protocol):
    """The streams that a log has begun so far."""

    def has_begun(self, stream: UUID, position: int, /) -> bool:
        """Return whether an event of a stream was taken, whose entity acted at a position."""
        ...


class Actors:
    """Takes the sound rows of a log in order; its memory grows only with the number of actors."""

    def __init__(
        self, ledger: str, known: KnownActors, streams: Begun, proven: int = ALL_PROVEN
    ) -> None:
        """`streams` are those that the log has begun so far.

        Nobody knows who wrote what is beyond the position `proven`: no event there is late.
        """
        self._ledger = ledger
        self._known = known
        self._streams = streams
        self._proven = proven
        self._spans: dict[str, Sequence[Span]] = {}
        self.before = deque[str](maxlen=BEFORE_MAX)
        self.open_since: dict[str, str] = {}
        """Since when those can act whose time has no end, of whom an event was taken."""
        self._waiting = deque[_Waiting]()
        self._first: Fault | None = None
        self._others = 0
        self._late: list[Late] = []

    def take(self, row: LogRow) -> None:
        """Take the next row."""
        meta = self.meta_of(row.state)
        if meta is None:
            return  # not an event at all: whoever reads it says so
        actor, at = meta.actor, meta.at
        if row.mac is None and actor in FORMER:
            pass  # an event of an earlier release
        elif actor.startswith("customer:"):
            self._customer(row.position, actor)
        else:
            self._check(row, actor, at)
        self.before.append(at)

    def look_back(self, states: Sequence[bytes]) -> bool:
        """Take only the times of events before the first one; return whether each has one."""
        meta = [self.meta_of(state) for state in states]
        self.before.extend(one.at for one in meta if one is not None)
        return None not in meta

    @staticmethod
    def meta_of(state: bytes) -> "_Meta | None":
        """Return who did something, and when; None where an event does not say it."""
        try:
            return WHO.decode(state).meta
        except UNREADABLE:
            return None

    def _check(self, row: LogRow, actor: str, at: str) -> None:
        of_any_mode = self._ledger == "accounts" and _rebinds_itself(row, actor)
        spans = None if of_any_mode else self._spans.get(actor)
        if spans is None:
            found = self._spans_of(actor, of_any_mode=of_any_mode)
            if isinstance(found, str):
                self._found(row.position, actor, found)
                return
            spans = found
            if not of_any_mode:  # it says nothing of what else the key may do
                self._spans[actor] = spans
                if spans[-1].until == NEVER:
                    self.open_since[actor] = spans[-1].since
        wrong = _wrong(spans, at)
        if wrong is not None:
            self._found(row.position, actor, wrong)
        elif (
            spans[-1].until != NEVER
            and row.position <= self._proven
            and is_late(self.before, at, spans[-1].until)
        ):
            self._found_late(row, actor, spans[-1], at)

    def waiting(self) -> list[UUID]:
        """Return the streams of entities that were not looked for yet."""
        return [one.stream for one in self._waiting]

    def lacking(self) -> set[UUID]:
        """Return those of them that were not registered yet."""
        waiting = ((one.stream, one.position) for one in self._waiting)
        return {stream for stream, at in waiting if not self._streams.has_begun(stream, at)}

    def faults(self) -> ActorFaults:
        """Return the faults of what was read, where no entity can still come."""
        self._settle(0)
        return ActorFaults(self._first, self._others + (self._first is not None), self._late)

    def _spans_of(self, actor: str, *, of_any_mode: bool) -> Sequence[Span] | str:
        """Return when an actor could act, in order, or why it never could."""
        kind, _, name = actor.partition(":")
        match kind:
            case "partner":
                return self._of_key(*name.partition("/")[::2], of_any_mode=of_any_mode)
            case "staff":
                span = self._known.staff.get(name)
                return "nobody of that id was ever staff" if span is None else [span]
            case "member":
                return self._of_person(name)
            case "system" if name in SYSTEM:
                return [Span("")]
            case _:
                return "that is nobody who could act"

    def _of_key(self, partner_id: str, key_id: str, *, of_any_mode: bool) -> Sequence[Span] | str:
        key = self._known.key(key_id)
        if key is None:
            return "no such key was issued"
        mode = key.mode if of_any_mode else self._ledger
        if (key.partner_id, key.mode) != (partner_id, mode):
            return f"the key was issued to {shown(key.partner_id)} for {shown(key.mode)}"
        return [key.span]

    def _of_person(self, person_id: str) -> Sequence[Span] | str:
        spans = self._known.members.get(person_id)
        if spans is None:
            spans = self._known.unnamed
        if not spans:
            return "nobody of that id was ever a member"
        # Of several teams, or of members whom their events do not name: at any time of any of them.
        return _joined(spans.values())

    def _customer(self, position: int, actor: str) -> None:
        name = actor.partition(":")[2]
        if name.startswith("per_"):
            return  # somebody who signed in, of whom the log has nothing else
        self._waiting.append(_Waiting(position, actor, entity_stream(self._ledger, name)))
        if len(self._waiting) > ENTITIES_LATE_MAX:
            self._settle(ENTITIES_LATE_MAX)

    def _settle(self, keep: int) -> None:
        """Look for the entities that acted, but for the last so many."""
        while len(self._waiting) > keep:
            position, actor, stream = self._waiting.popleft()
            if not self._streams.has_begun(stream, position):
                self._found(position, actor, UNREGISTERED)

    def _found_late(self, row: LogRow, actor: str, last: Span, at: str) -> None:
        why = f"it ended at {last.ended_at}"
        if len(self._late) == LATE_MAX:
            self._found(row.position, actor, why)
            return
        fault = actor_fault(row.position, actor, why)
        self._late.append(Late(fault, row.append_id, row.originator_id, at, last.until))

    def _found(self, position: int, actor: str, why: str) -> None:
        fault = actor_fault(position, actor, why)
        if self._first is None:
            self._first = fault
            return
        self._others += 1
        if position < (self._first.position or 0):  # an entity that was waited for
            self._first = fault


def is_late(before: Iterable[str], at: str, until: str) -> bool:
    """Return whether the middle one of the times before an event is beyond it and its actor's."""
    times = sorted(before)
    if len(times) < BEFORE_MIN:
        return False
    middle = times[(len(times) - 1) // 2]
    return middle > at and middle > until


def _wrong(spans: Sequence[Span], at: str) -> str | None:
    """Return why an actor could not act at a time, if it could not."""
    begun = [one for one in spans if one.since <= at]
    if not begun:
        return f"it was not there yet at {shown(at)}"
    return f"it ended at {begun[-1].ended_at}" if at > begun[-1].until else None


def _rebinds_itself(row: LogRow, actor: str) -> bool:
    if row.topic != REBOUND:
        return False
    try:
        key = _OF_KEY.decode(row.state).data
    except UNREADABLE:
        return False
    return actor == f"partner:{key.partner_id}/{key.key_id}"


def _joined(spans: Iterable[Span]) -> Sequence[Span]:
    """Return the same times in order, as spans of which none overlaps another."""
    found = list[Span]()
    for one in sorted(spans):
        if found and one.since <= found[-1].until:
            last = max(found[-1], one, key=lambda span: span.until)
            found[-1] = last._replace(since=found[-1].since)
        else:
            found.append(one)
    return found
