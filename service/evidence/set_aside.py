"""Events that were set aside, and taking back those that this service wrote (decision 45)."""

from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

from service.core.clock import timestamp
from service.core.ids import stream_id
from service.facts.entities import EntityRegistered
from service.facts.lineages import EventTakenBack
from service.ledger.binding import Binding
from service.ledger.codec import happened_at, stored_form
from service.ledger.database import Row
from service.ledger.decoding import StoredEvent
from service.ledger.encryption import DecryptionFailed
from service.ledger.events import Cause
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import Append

LISTED_MAX: Final = 100
_STATE_BYTES_MAX: Final = 1 << 20
"""Of the record that an event was taken back; its reason is what takes most of it."""

Mac = Literal["holds", "key retired", "does not hold", "none"]
"""What the MAC of an event says of who wrote it: this service, whoever has a retired key, or nobody
whom it knows."""

_SQL = queries("service.evidence")


class TakeBackRefused(Exception):
    """The event stays set aside. `str()` tells an operator why."""


class SetAside(NamedTuple):
    """An event that was set aside. `is_ours`: this service wrote it, by a key that still counts.

    The stream, version and topic are None if only the queue named the event. `taken_back_at` is
    when it was written again, as it was.
    """

    set_aside_id: int
    set_aside_at: datetime
    reason: str
    append_id: int
    stream: UUID | None
    version: int | None
    topic: str | None
    is_ours: bool
    mac: Mac
    taken_back_at: datetime | None


async def newest_set_aside(ledger: Ledger) -> list[SetAside]:
    """Return the events that were set aside last, newest first."""
    rows = await ledger.database.reads.fetch(_SQL.set_aside, None, LISTED_MAX)
    places = {_place(ledger, row["id"]): row["id"] for row in rows}
    found = await ledger.database.reads.fetch(_SQL.taken_back, list(places), _STATE_BYTES_MAX)
    binding = await ledger.placing((row["append_id"], row["mac"]) for row in found)
    # Whoever can write to the database can say that an event was taken back, but not with our MAC.
    taken_back = {
        places[row["originator_id"]]: happened_at(row["state"]) for row in binding.ours(found)
    }
    return [_set_aside(row, binding, taken_back.get(row["id"])) for row in rows]


async def take_back(ledger: Ledger, set_aside_id: int, reason: str, cause: Cause) -> SetAside:
    """Write an event again, as it was, if its stream has not gone on; return it numbered.

    Its rows of inline read models are made again, too, with what another stream says of them.

    Raises TakeBackRefused.
    """
    binding = await ledger.binding()

    async def attempt(transaction: Transaction) -> SetAside:
        rows = await transaction.fetch(_SQL.set_aside, set_aside_id, 1)
        if not rows:
            raise TakeBackRefused(f"{ledger.name} has set nothing aside under {set_aside_id}")
        event, place = _set_aside(rows[0], binding), _place(ledger, set_aside_id)
        if past := await transaction.read(place):
            raise TakeBackRefused(f"it was taken back already, at {timestamp(past[0].meta.at)}")
        if event.mac == "key retired":
            raise TakeBackRefused(
                "the event key of its MAC was retired, so that whoever got hold of that key may "
                "have written it: whoever did it has to do it again"
            )
        if event.stream is None or event.version is None or not event.is_ours:
            raise TakeBackRefused("this service did not write it: it has no MAC that holds")
        await transaction.lock(event.stream)
        last = await transaction.fetchrow(_SQL.last_version, event.stream)
        due = 1 + (0 if last is None else last["version"])
        if event.version != due:
            raise TakeBackRefused(
                f"it is version {event.version} of its stream, where version {due} is due: whoever "
                "did it has to do it again"
            )
        (written,) = await transaction.fetch(_SQL.take_back, set_aside_id)
        place_in_log = (0, written["append_ids"][0], event.stream, event.version)
        await _project(transaction, StoredEvent(*place_in_log, event.topic or "", written["state"]))
        taken = EventTakenBack(
            set_aside_number=set_aside_id,
            stream=str(event.stream),
            stream_version=event.version,
            event_topic=event.topic or "",
            reason=reason,
        )
        (recorded,) = await transaction.append(Append(place, 0, [taken], cause))
        return event._replace(taken_back_at=recorded.meta.at)

    taken = await ledger.decide(attempt, background=BACKGROUND_SECONDS)
    await Sequencer(ledger).number_committed()
    return taken


async def _project(transaction: Transaction, stored: StoredEvent) -> None:
    """Make the rows of an event that is there again; raises TakeBackRefused without its key."""
    sealed = stored_form(stored.state).sealed
    try:
        if sealed is not None and await transaction.data_key(sealed.key) is None:
            raise TakeBackRefused("the key of its personal data was destroyed by an erasure")
        recorded = await transaction.decode([stored])
    except DecryptionFailed as error:
        raise TakeBackRefused(
            "it was done again since, under another key, and that was set aside as well: only the "
            "later one can be taken back"
        ) from error
    await transaction.project_again(recorded)
    for one in recorded:
        if isinstance(one.event, EntityRegistered):
            await transaction.fetch(_SQL.establish_again, one.event.entity_id)


def _place(ledger: Ledger, set_aside_id: int) -> UUID:
    """Return the id of the stream in which it is said that an event was taken back."""
    return stream_id("taken-back", ledger.name, str(set_aside_id))


def _set_aside(row: Row, binding: Binding, taken_back_at: datetime | None = None) -> SetAside:
    *columns, digest, mac = row
    said = _mac(binding, digest, mac)
    return SetAside(*columns, is_ours=said == "holds", mac=said, taken_back_at=taken_back_at)


def _mac(binding: Binding, digest: bytes | None, mac: bytes | None) -> Mac:
    if digest is None or mac is None:
        return "none"
    if not binding.keys.holds(digest, mac):
        return "does not hold"
    return "holds" if mac[0] >= binding.oldest else "key retired"
