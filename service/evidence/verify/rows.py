"""The rows of a log, one by one: numbers, order, hashes, and the tree that grows over them."""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from service.evidence.verdict import Fault
from service.evidence.verify.streams import Streams
from service.ledger.binding import BOUND_TOPIC, boundary_stream
from service.ledger.database import Connection
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.event_macs import UNBOUND, EventKeys, digest_of_record
from service.ledger.merkle import CompactRange, leaf_hash, leaf_record
from service.ledger.sql import queries

_SQL = queries("service.evidence.verify")

FIRST: Final = -(1 << 63)
"""Below every position, forged ones included."""

_ROWS_MAX: Final = 500
"""Rows fetched at a time: more take memory, without a measurable gain."""


class LogRow(NamedTuple):
    """A row of the log beside its event, as the database returns it: any of it may be forged.

    `event` is the event's own append_id, None if there is no event.
    """

    position: int
    append_id: int
    leaf_hash: bytes
    event: int | None
    originator_id: UUID
    originator_version: int
    topic: str
    state: bytes
    mac: bytes | None = None

    def leaf(self) -> bytes | None:
        """Return the hash of the columns; None if they cannot be hashed."""
        record = self.record()
        return None if record is None else leaf_hash(record)

    def record(self) -> bytes | None:
        """Return the record whose hash is the leaf; None if the columns cannot make one."""
        try:
            return leaf_record(*self[:2], *self[4:-1])
        except (TypeError, ValueError, AttributeError):  # no text, no bytes: a column was replaced
            return None


async def log_rows(
    connection: Connection, schema: str, first: int
) -> AsyncGenerator[Sequence[LogRow]]:
    """Yield the rows of a log from a position on, a page at a time, in the caller's snapshot."""
    cursor = await connection.cursor(_SQL.rows.on(schema), first)
    sizes = await connection.cursor(_SQL.sizes.on(schema), first)
    while ahead := [row["size"] for row in await sizes.fetch(_ROWS_MAX)]:
        for count in _pages(ahead):
            yield [LogRow(*record) for record in await cursor.fetch(count)]


def _pages(sizes: Iterable[int]) -> Iterator[int]:
    """Yield how many of the next rows make a page, by their sizes."""
    count = held = 0
    for size in sizes:
        count, held = count + 1, held + size
        if held >= PAGE_BYTES_MAX:
            yield count
            count = held = 0
    if count:
        yield count


class Macs:
    """What the rows' MACs are checked with. Rows before the first boundary need none."""

    def __init__(self, ledger: str, keys: EventKeys, oldest: int | None = None) -> None:
        """`keys` are the ledger's, and `oldest` is the first that counts; None: at the start."""
        self._keys = keys
        self._stream = boundary_stream(ledger)
        self._oldest = keys.oldest if oldest is None else oldest

    def misfit(self, stream: UUID, topic: str, digest: bytes, mac: bytes | None) -> str | None:
        """Return why the service cannot have written an event, as far as that can be known."""
        is_boundary = topic == BOUND_TOPIC and stream == self._stream
        if mac is None and self._oldest == UNBOUND and not is_boundary:
            return None
        if mac is None or not self._keys.holds(digest, mac):
            return "this service did not write it: its MAC does not hold"
        key_id = mac[0]
        if key_id < self._oldest:
            return f"it was bound by event key {key_id}, which was retired before"
        if is_boundary:
            self._oldest = key_id
        return None


class Rows:
    """The log so far: every row until now was what it should be."""

    def __init__(self, macs: Macs | None = None) -> None:
        """Without `macs`, nobody knows who wrote them."""
        self._macs = macs
        self.tree = CompactRange()
        self.streams = Streams()
        self.misplaced: Fault | None = None

    @property
    def size(self) -> int:
        """How many events were read."""
        return self.tree.size

    def take(self, row: LogRow) -> Fault | None:
        """Take the next row; return what is wrong with it."""
        due = self.tree.size + 1
        position = row.position
        if position != due:
            return self._out_of_order(position, due)
        if row.event is None:
            return Fault(due, f"The event at position {due} is gone.")
        record = row.record()
        if record is None or (leaf := leaf_hash(record)) != row.leaf_hash:
            sentence = f"The event at position {due} is not the one that was hashed there."
            return Fault(due, sentence)
        wrong = self._misfit(row, record)
        if wrong is not None:
            return Fault(due, f"The event at position {due} does not fit: {wrong}.")
        self.tree.append(leaf)
        return None

    def _out_of_order(self, position: int | None, due: int) -> Fault | None:
        """Return the fault of a position that is not the one due."""
        if position is None or position < 1:
            # Not a position of the log: reported if nothing is wrong with the others.
            self.misplaced = Fault(None, f"The log has a row at {position}, which is no position.")
            return None
        if position < due:
            return Fault(position, f"Position {position} is in the log more than once.")
        missing = f"position {due}" if position == due + 1 else f"positions {due} to {position - 1}"
        return Fault(due, f"The log has a gap: {missing} is missing.".replace("s is", "s are"))

    def _misfit(self, row: LogRow, record: bytes) -> str | None:
        try:
            if not row.topic.isprintable():
                return "its topic is not one line of text"
            stream = row.originator_id
            digest = digest_of_record(record)
            wrong = self._macs and self._macs.misfit(stream, row.topic, digest, row.mac)
            if wrong is not None:
                return wrong
            return self.streams.take(stream, row.originator_version, row.append_id)
        except (TypeError, AttributeError):
            return "a column of it is not what it was made as"
