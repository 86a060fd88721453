"""Reading the events that an erasure decides on, and ignoring those that others wrote."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from uuid import UUID

from service.core.progress import Show
from service.ledger.binding import Binding
from service.ledger.codec import Codec
from service.ledger.database import Row
from service.ledger.decoding import StoredRow, Unread, described
from service.ledger.erased import told
from service.ledger.events import Event, Meta, Unreadable
from service.ledger.following.parking import NOT_OURS
from service.ledger.ledger import Ledger
from service.ledger.scan import appended, each_of
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

_SQL = queries("service.privacy")


class Genuine:
    """Reads events for an erasure, and collects in `unread` those that have no effect on it.

    These are the events that this service did not write. Where events need no MAC yet, these are
    also events without one that cannot be read. Otherwise, whoever can write to the database could
    keep a person's data from being erased. An event that has a valid MAC and cannot be read was
    written by a later release. It may say that a claim or a link is this subject's, so it is an
    error.
    """

    def __init__(self, codec: Codec, binding: Binding) -> None:
        """Begin with none that is unread. `binding` is what the ledger's events are told by."""
        self._codec = codec
        self._binding = binding
        self.unread: list[Unread] = []
        """Without positions. An event may be in it twice."""

    async def events(
        self, fetch: Callable[..., Awaitable[Sequence[Row]]], rows: Sequence[StoredRow]
    ) -> list[tuple[UUID, Event, Meta]]:
        """Return what events of this service say, with their streams; personal fields are None.

        `fetch` runs a statement where the rows were read. Raises Unreadable where a later release
        wrote one.
        """
        found: list[tuple[UUID, Event, Meta]] = []
        binding = await self._binding.placing(fetch, ((row[1], row[6]) for row in rows))
        for row in rows:
            _, append_id, stream, version, topic, state, mac = row
            if not binding.is_ours(append_id, stream, version, topic, state, mac):
                self._note(row, NOT_OURS)
                continue
            try:
                found.append((stream, *self._codec.decode(stream, version, topic, state)))
            except Unreadable as error:
                if mac is not None:
                    raise _later(error) from error
                self._note(row, described(error))
        return found

    async def search(
        self, ledger: Ledger, topics: Iterable[type[Event]], told: str, show: Show
    ) -> list[tuple[UUID, Event, Meta]]:
        """Return what the whole log has of some topics with `told` in it, as `events` does."""
        fetch, found = ledger.database.background.fetch, list[tuple[UUID, Event, Meta]]()
        with show(f"reading {ledger.name}", await appended(ledger), unit="events") as advance:
            async for rows in each_of(ledger, topics, advance, told=told):
                found += await self.events(fetch, rows)
        return found

    async def told(
        self, transaction: Transaction, streams: Iterable[UUID], topic: type[Event]
    ) -> list[tuple[UUID, Event, Meta]]:
        """Return what the events of one topic in some streams say, as `events` does."""
        rows = await told(transaction.fetch, list(streams), topic.__name__)
        return await self.events(transaction.fetch, rows)

    async def note_others(self, transaction: Transaction, streams: Iterable[UUID]) -> None:
        """Collect what others wrote and has no number: what follows in its stream gets none."""
        keys, oldest = self._binding.keys, self._binding.oldest
        for row in await transaction.fetch(_SQL.unnumbered, list(streams)):
            if not keys.is_ours(row["digest"], row["mac"], oldest=oldest):
                self._note(row, NOT_OURS)

    def _note(self, row: StoredRow, fault: str) -> None:
        _, append_id, stream, version, *_ = row
        self.unread.append(Unread(0, append_id, stream, version, fault))


def _later(error: Unreadable) -> Unreadable:
    """Return why an event that this service wrote ends the erasure."""
    fault = (
        f"{error.fault}. A later release of this service wrote it, and it may say that a claim or "
        "a link is this subject's: repeat the command with that release"
    )
    return Unreadable(fault, error.place)
