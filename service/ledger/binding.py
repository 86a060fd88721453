"""From when on a ledger's events need a MAC, and which events count as ours (decision 45)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.database import LedgerUnavailable, Row
from service.ledger.decoding import StoredRow
from service.ledger.event_macs import (
    FIRST_KEY,
    MAC_BYTES,
    UNBOUND,
    EventKeys,
    event_digest,
    keyed_hash,
)
from service.ledger.sql import queries

T = TypeVar("T", bound=StoredRow)

BOUND_TOPIC: Final = "EventsBound"
"""The event that says that every later one has a MAC, by its own key or a later one."""

_UNPLACED: Final[Mapping[int, int]] = {}  # a binding is sent to other processes
_SQL = queries("service.ledger")


class UnboundEvent(LedgerUnavailable):
    """A stream has an event that this service did not write. A queued one will be set aside."""


class EventKeyLacking(LedgerUnavailable):
    """The log names an event key that this process cannot open: what it signs may not count."""


class Boundary(NamedTuple):
    """The position after which every event needs a MAC, of this key or a later one.

    Position 0: from the beginning of the log.
    """

    position: int
    event_key: int = FIRST_KEY


SINCE_START: Final = Boundary(0)


def boundary_stream(ledger: str) -> UUID:
    """Return the id of the stream in which a ledger says since when its events are bound."""
    return stream_id("events-bound", ledger)


def binding_of(ledger: str, keys: EventKeys, rows: Sequence[Row]) -> "Binding":
    """Return from when on events are bound, and by which keys, from the numbered `EventsBound`.

    Such an event names the key of its own MAC, so nobody can retire a key with an event of an
    earlier key.
    """
    named = max((row["mac"][0] for row in rows if len(row["mac"]) == MAC_BYTES), default=UNBOUND)
    return Binding(ledger, keys, _boundaries(ledger, keys, rows), named)


def _boundaries(ledger: str, keys: EventKeys, rows: Iterable[Row]) -> Sequence[Boundary]:
    stream, found = boundary_stream(ledger), [SINCE_START] if keys.since_start else []
    for position, version, topic, state, mac in rows:
        is_later = not found or mac[:1] > bytes((found[-1].event_key,))
        if is_later and keys.holds(event_digest(stream, version, topic, state), mac):
            found.append(Boundary(position, mac[0]))
    return found


class Binding(NamedTuple):
    """How to recognise a ledger's own events: the keys, and from when on which MACs are needed.

    No boundaries if no event needs a MAC. `named` is the newest key that a numbered `EventsBound`
    has in its MAC, whoever wrote it. `positions` are those of events that are about to be judged,
    by their append_ids, as `placing` found them.
    """

    ledger: str
    keys: EventKeys
    boundaries: Sequence[Boundary]
    named: int = UNBOUND
    positions: Mapping[int, int] = _UNPLACED

    @property
    def oldest(self) -> int:
        """The oldest key by which an event that is written now counts."""
        return self.boundaries[-1].event_key if self.boundaries else UNBOUND

    @property
    def is_settled(self) -> bool:
        """Whether no key is left that another boundary could retire.

        Of all that there are: whoever can change a row says since when the newest one signs.
        """
        return self.keys.are_all and self.oldest >= max(self.keys.keys)

    @property
    def is_overtaken(self) -> bool:
        """Whether the log names a key that this process cannot open: its own may be retired.

        A row that somebody added to the event keys is not enough for that. With one in the log as
        well, which `audit verify` finds, they stop writing, until the first of them is deleted.
        """
        return not self.keys.are_all and self.named > max(self.keys.keys)

    def refuse_overtaken(self) -> None:
        """Raise EventKeyLacking where this process can neither write what counts, nor judge it."""
        if self.is_overtaken:
            raise EventKeyLacking(self.ledger)

    @property
    def writing(self) -> EventKeys:
        """The keys with which events are written now: none signs that would not count.

        Raises EventKeyLacking where this process cannot know whether one does.
        """
        self.refuse_overtaken()
        if self.keys.signing >= self.oldest:
            return self.keys
        return self.keys._replace(signing=self.oldest)

    @property
    def retired(self) -> bytes:
        """What MACs of retired keys are below, and no MAC is: their events count by position."""
        return bytes((self.oldest,)) if self.boundaries and self.boundaries[-1].position else b""

    def placed(self, places: Iterable[tuple[int | None, int | None]]) -> "Binding":
        """Return this with the positions of some events, which their append_ids come with."""
        known = {one: position for one, position in places if one and position}
        return self._replace(positions=known) if known else self

    async def placing(
        self,
        fetch: Callable[..., Awaitable[Sequence[Row]]],
        events: Iterable[tuple[int | None, bytes | None]],
    ) -> "Binding":
        """Return this with the positions of those of some events that only these can tell.

        Given their append_ids and MACs: an event of a key that was retired counts if it was
        numbered before that. No other is looked up.
        """
        retired = self.retired
        asked = [one for one, mac in events if one is not None and (mac or b"") < retired]
        if not asked:
            return self
        found = await fetch(_SQL.positions, asked)
        return self._replace(positions={row["append_id"]: row["position"] for row in found})

    def oldest_at(self, position: int) -> int:
        """Return the oldest key by which the event at a position counts; 0: it has none yet."""
        if not position:
            return self.oldest
        before = [one.event_key for one in self.boundaries if one.position < position]
        return before[-1] if before else UNBOUND

    def check(
        self,
        append_id: int,
        stream: UUID,
        version: int,
        topic: str,
        state: bytes,
        mac: bytes | None,
    ) -> None:
        """Raise UnboundEvent unless this service wrote an event that a command decides on."""
        if not self.is_ours(append_id, stream, version, topic, state, mac):
            raise UnboundEvent(f"version {version} of stream {stream} of {self.ledger}")

    def is_ours(
        self,
        append_id: int,
        stream: UUID,
        version: int,
        topic: str,
        state: bytes,
        mac: bytes | None,
    ) -> bool:
        """Return whether this service wrote an event.

        One of a retired key counts only at a position before that, among the `positions` of this:
        an append_id is drawn before its event commits, perhaps long after the key was retired.
        """
        digest = event_digest(stream, version, topic, state)
        oldest = self.oldest_at(self.positions.get(append_id, 0))
        return self.keys.is_ours(digest, mac, oldest=oldest)

    def ours(self, events: Iterable[T]) -> list[T]:
        """Return those of stored events, with their MACs, that this service wrote.

        By their positions, or as `is_ours` does where they have none.
        """
        signing = self.keys.signing
        usual, made = bytes((signing,)), keyed_hash(self.keys.keys[signing])
        counts = signing >= self.oldest
        found = list[T]()
        for event in events:
            position, append_id, stream, version, topic, state, mac = event
            digest = event_digest(stream, version, topic, state)
            # Nearly all events have the present key, whatever key was valid before it.
            if counts and mac == usual + made(digest):
                found.append(event)
                continue
            oldest = self.oldest_at(position or self.positions.get(append_id, 0))
            if self.keys.is_ours(digest, mac, oldest=oldest):
                found.append(event)
        return found

    def check_first(self, stream: UUID, topic: str, row: Row) -> None:
        """Check the event that begins a stream: `made_id`, `made`, `made_mac`, `made_position`."""
        placed = self.placed([(row["made_id"], row["made_position"])])
        placed.check(row["made_id"], stream, 1, topic, row["made"], row["made_mac"])
