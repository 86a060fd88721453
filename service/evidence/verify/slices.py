"""Verifying a whole log again and again, a slice at a time, beside what the worker does.

`audit verify` reads a log in one go, with more that it compares. This is what notices by itself,
within a day, that an event was altered: each leaf is made again from its columns, each MAC checked,
and the tree has to have the root of every checkpoint on its way. A finding stays until a whole pass
found nothing, and nothing is signed meanwhile (service/evidence/checkpoints).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
import structlog

from service.core.ids import stream_id
from service.evidence.checkpoint import Checkpoint
from service.evidence.lineages import Lineages, lineages_of
from service.evidence.note import NoteInvalid, NoteKey
from service.evidence.replay.footing import binds
from service.evidence.verify.rows import LogRow
from service.ledger.binding import Binding
from service.ledger.database import Row
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.event_macs import EventKeys, digest_of_record, event_digest
from service.ledger.ledger import Ledger, Transaction
from service.ledger.merkle import CompactRange, leaf_hash
from service.ledger.sql import queries

EVENTS_MAX: Final = 500
"""Read at once, fewer where they are large; other tasks of the process run in between."""
SLICE_SECONDS: Final = 0.5
"""After this a slice ends, and its place is kept."""
REST: Final = 3.0
"""After a slice, so many times what it took: at most a quarter of a processor is used."""
SLICE_SECONDS_MAX: Final = 60.0
FIRST_SECONDS: Final = 30.0
"""After its start a process leaves the log alone: others may be starting, too."""
LOOK_SECONDS: Final = 60.0
"""Between two looks at whether a pass is due."""
FAULTY_SECONDS: Final = 600.0
"""After a finding, a pass begins so soon: what was mended is to count as that."""

_SQL = queries("service.evidence.verify")

log = structlog.get_logger()


class PassPlace(NamedTuple):
    """Where the present pass is, and what the last one said. Times are None until there was one."""

    position: int
    tree: bytes
    began_at: datetime | None
    finished_at: datetime | None
    size: int
    fault_position: int | None
    fault: str | None

    def is_resting(self, now: datetime, seconds: float) -> bool:
        """Return whether no pass goes on, and none has to begin yet."""
        if self.position or self.began_at is None or self.finished_at is None:
            return False
        wait = min(seconds, FAULTY_SECONDS) if self.fault is not None else seconds
        return self.began_at <= now < self.began_at + timedelta(seconds=wait)


_NEW: Final = PassPlace(0, b"", None, None, 0, None, None)


class Slices:
    """Verifies a ledger in slices. Any number of processes may: a row lock lets one through."""

    def __init__(
        self,
        ledger: Ledger,
        keys: Sequence[NoteKey],
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Have each pass end within `seconds` of the one before; `monotonic` is of this process."""
        self._ledger = ledger
        self._keys = keys
        self._seconds = seconds / 2
        self._monotonic = monotonic
        self._next_at = monotonic() + FIRST_SECONDS
        self._stream = stream_id("log-verification", ledger.name)

    async def step(self) -> int:
        """Verify a slice if a pass is due; always return 0, since a rest is due, too."""
        began = self._monotonic()
        if began < self._next_at:
            return 0
        self._next_at = began + LOOK_SECONDS
        if await self.slice():
            ended = self._monotonic()
            self._next_at = ended + REST * (ended - began)
        return 0

    async def whole(self, advance: Callable[[int], object]) -> None:
        """Verify up to the end if a pass is due; `advance` gets the number of events passed."""
        while passed := await self.slice():
            advance(passed)

    async def slice(self) -> int:
        """Verify a slice; return how many events it had, 0 where no pass is due."""
        ledger, now = self._ledger, self._ledger.clock()
        keys, binding = await ledger.event_keys(), await ledger.binding()
        async with ledger.transaction(background=SLICE_SECONDS_MAX) as transaction:
            row = await transaction.fetchrow(_SQL.slices_hold)
            if row is None:
                return 0  # another process is at it
            place = self._opened(row, keys)
            if place.is_resting(now, self._seconds):
                return 0
            if not place.position:
                place = place._replace(began_at=now)
            lineages = await lineages_of(transaction.connection, ledger.name, self._keys)
            walk = _Slice(transaction, _Judge(binding, self._keys, lineages), place.position)
            after = await walk.go(place, self._ledger.clock)
            await transaction.fetch(_SQL.slices_note, *after, self._mac(after, keys))
        if after.fault is not None and after.fault != place.fault:
            log.error("log altered", ledger=ledger.name, position=after.fault_position)
        return walk.passed

    def _opened(self, row: Row, keys: EventKeys) -> PassPlace:
        """Return the place that a process has kept; a finding stays, whoever wrote the row."""
        *columns, mac = row
        place = PassPlace(*columns)
        if mac is not None and keys.holds(self._digest(place), mac):
            return place
        return _NEW._replace(fault_position=place.fault_position, fault=place.fault)

    def _mac(self, place: PassPlace, keys: EventKeys) -> bytes:
        return keys.mac(self._stream, 1, "LogVerification", msgspec.json.encode(list(place)))

    def _digest(self, place: PassPlace) -> bytes:
        state = msgspec.json.encode(list(place))
        return event_digest(self._stream, 1, "LogVerification", state)


class _Judge(NamedTuple):
    """What rows and checkpoints are judged by."""

    binding: Binding
    keys: Sequence[NoteKey]
    lineages: Lineages

    def row(self, row: LogRow, due: int) -> bytes:
        """Return the leaf of the row that is due; raises _Altered."""
        if row.position != due:
            raise _Altered(due, f"The event at position {due} is missing.")
        record = row.record() if row.event is not None else None
        if record is None or (leaf := leaf_hash(record)) != row.leaf_hash:
            raise _Altered(due, f"The event at position {due} is not the one that was hashed.")
        oldest = self.binding.oldest_at(due)
        if not self.binding.keys.is_ours(digest_of_record(record), row.mac, oldest=oldest):
            raise _Altered(due, f"The event at position {due} was not written by this service.")
        return leaf

    def checkpoint(self, row: Row) -> Checkpoint | None:
        """Return a stored checkpoint that binds the log, None for one that does not."""
        size, origin, note = row
        if not (self.keys and size and binds(self.lineages, origin, size)):
            return None
        try:
            checkpoint = Checkpoint.open(note, self.keys)
        except NoteInvalid as error:
            sentence = f"The stored checkpoint of {size} events is not sound: {error}."
            raise _Altered(size, sentence) from error
        if (checkpoint.size, checkpoint.origin) != (size, origin):
            raise _Altered(size, f"The stored checkpoint of {size} events is another one's note.")
        return checkpoint


class _Altered(Exception):
    """The log is not what was hashed or signed."""

    def __init__(self, position: int, sentence: str) -> None:
        super().__init__(sentence)
        self.position = position


class _Slice:
    """Reads on from a position for SLICE_SECONDS."""

    def __init__(self, transaction: Transaction, judge: _Judge, position: int) -> None:
        self._transaction = transaction
        self._judge = judge
        self._start = self._held = position
        self._tree = CompactRange()
        self.passed = 0

    async def go(self, place: PassPlace, clock: Callable[[], datetime]) -> PassPlace:
        """Return the place after it; at the end of the log, that of a pass that has ended."""
        try:
            self._tree = CompactRange.from_bytes(place.position, place.tree)
            is_over = await self._read()
        except _Altered as altered:
            self.passed = max(1, self.passed)
            found = place._replace(fault_position=altered.position, fault=str(altered))
            return found._replace(position=0, tree=b"", finished_at=clock())
        if not is_over:
            return place._replace(position=self._tree.size, tree=self._tree.to_bytes())
        return PassPlace(0, b"", place.began_at, clock(), self._tree.size, None, None)

    async def _read(self) -> bool:
        """Read pages until the time is up, or the log is at its end: then return True."""
        ends_at = time.monotonic() + SLICE_SECONDS
        while True:
            head = await self._transaction.fetchrow(_SQL.slices_head)
            size = 0 if head is None else head["size"]
            if self._tree.size >= size:
                await self._end(head)
                return True
            await self._page(min(size, self._tree.size + EVENTS_MAX))
            if time.monotonic() > ends_at:
                return False
            await asyncio.sleep(0)

    async def _page(self, end: int) -> None:
        start, tree = self._tree.size, self._tree
        rows = await self._transaction.fetch(_SQL.slices_rows, start, end, PAGE_BYTES_MAX)
        if not rows:
            raise _Altered(start + 1, f"The event at position {start + 1} is missing.")
        last = rows[-1]["position"]
        signed = await self._transaction.fetch(_SQL.slices_signed, start, last)
        ahead = [one for one in map(self._judge.checkpoint, signed) if one is not None]
        for row in rows:
            tree.append(self._judge.row(LogRow(*row), tree.size + 1))
            self.passed += 1
            while ahead and ahead[0].size == tree.size:
                self._compare(ahead.pop(0))

    def _compare(self, checkpoint: Checkpoint) -> None:
        if self._tree.root() != checkpoint.root:
            raise _Altered(
                self._held + 1,
                f"One of the events at positions {self._held + 1} to {checkpoint.size} is not what "
                "was signed.",
            )
        self._held = checkpoint.size

    async def _end(self, head: Row | None) -> None:
        """Compare what is there beside the rows: the head's tree, and larger checkpoints."""
        size = self._tree.size
        if head is None or head["size"] < size:
            raise _Altered(size, f"The log has lost its head, or what followed position {size}.")
        if head["tree"] is not None and head["tree"] != self._tree.to_bytes():
            raise _Altered(size, "The tree in the head of the log is not that of its events.")
        for row in await self._transaction.fetch(_SQL.slices_signed, size, None):
            # The log may have grown since its head was read; a checkpoint follows numbering.
            if self._judge.checkpoint(row) is not None:
                again = await self._transaction.fetchrow(_SQL.slices_head)
                if again is None or again["size"] < row["size"]:
                    raise _Altered(size + 1, f"A checkpoint covers {row['size']} events.")
