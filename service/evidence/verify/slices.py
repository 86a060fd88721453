"""Background verification: verifying a whole log again and again, a slice at a time.

`audit verify` reads a log at once, and compares more. This detects within a day, without anybody's
action, that an event was altered. Each leaf is recomputed from its columns, each MAC is checked,
each event has to follow the one before it in its stream, and the tree must have the root of every
checkpoint that it passes. A finding stays until a whole pass has found nothing, and nothing is
signed meanwhile (service/evidence/checkpoints). Findings beside the hashes stay as long, and stop
nothing (slice_beside.py).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from service.core.counted import counted
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.unbound import OUT_OF_ORDER
from service.evidence.lineages import Lineages, lineages_of
from service.evidence.log_pass import NEW, LogPass, noted
from service.evidence.note import NoteInvalid, NoteKey
from service.evidence.replay.footing import binds
from service.evidence.tree.tile import TreeNode, completed_nodes
from service.evidence.verify.people import People
from service.evidence.verify.rows import LogRow
from service.evidence.verify.slice_beside import Beside
from service.ledger.binding import Binding
from service.ledger.database import Row
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.event_macs import digest_of_record
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange, leaf_hash
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

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
"""How often to check whether a pass is due."""
_BEYOND_MAX: Final = 500
"""Checkpoints beyond the log's end that are looked at, but for those that are set aside: ours are
few, and the first one that is not sound is a finding."""

_SQL = queries("service.evidence.verify")
_HEAD = queries("service.evidence.checkpoints").head

log = structlog.get_logger()


class Slices:
    """Verifies a ledger in slices. Any number of processes may: a row lock lets one through."""

    def __init__(
        self,
        ledger: Ledger,
        keys: Sequence[NoteKey],
        seconds: float,
        people: People,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Plan each pass to end within `seconds` of the one before, by the clock `monotonic`.

        `people` are who could act, read for all ledgers.
        """
        self._ledger = ledger
        self._people = people
        self._keys = keys
        self._seconds = seconds / 2
        self._monotonic = monotonic
        self._next_at = monotonic() + FIRST_SECONDS
        self._changes: int | None = None
        self._changed_at: datetime | None = None

    async def step(self) -> int | None:
        """Verify a slice if it is time, and return 0, since a rest is due, too; None: it is not."""
        began = self._monotonic()
        if began < self._next_at:
            return None
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
        """Verify a slice; return how many events it had, 0 where no pass is due.

        Or 1, where all its time went to who could act.
        """
        ledger, now = self._ledger, self._ledger.clock()
        keys, binding = await ledger.event_keys(), await ledger.binding()
        async with ledger.transaction(background=SLICE_SECONDS_MAX) as transaction:
            row = await transaction.fetchrow(_SQL.slices_hold)
            if row is None:
                return 0  # another process is at it
            place = noted(row, ledger.name, keys)
            if place is None:
                log.error("log verification altered", ledger=ledger.name)
                place = NEW
            if place.is_resting(now, self._seconds) and not await self._has_changed(
                transaction, place, now
            ):
                return 0
            if not place.position:
                place = place._replace(began_at=now)
            beside = await Beside.of(transaction, self._people, binding, place.position)
            if not await beside.is_ready():
                return 1
            lineages = await lineages_of(transaction.connection, ledger.name, self._keys)
            judge = _Judge(binding, self._keys, lineages)
            walk = _Slice(transaction, judge, beside, place.position)
            after = await walk.go(place, self._ledger.clock)
            await transaction.fetch(_SQL.slices_note, *after, after.mac(ledger.name, keys))
        if after.fault is not None and after.fault != place.fault:
            log.error("log altered", ledger=ledger.name, position=after.fault_position)
        return walk.passed

    async def _has_changed(self, transaction: Transaction, place: LogPass, now: datetime) -> bool:
        """Return whether a statement has changed rows since the last pass began.

        Nothing is known of before this process first looked: that is for the pass of each day.
        """
        row = await transaction.fetchrow(_SQL.slices_changes)
        changes = None if row is None else row["changes"]
        if self._changes not in {None, changes}:
            self._changed_at = now
        self._changes = changes
        changed_at, began_at = self._changed_at, place.began_at
        return changed_at is not None and began_at is not None and began_at < changed_at


class _Judge(NamedTuple):
    """What rows and checkpoints are checked against."""

    binding: Binding
    keys: Sequence[NoteKey]
    lineages: Lineages

    @property
    def origins(self) -> list[str]:
        """Those of the lineages, the lost ones that a later one follows included."""
        named = ((one.origin, one.follows) for one in self.lineages.begun)
        return sorted({origin for both in named for origin in both if origin})

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
            sentence = f"The stored checkpoint of {counted(size, 'event')} is not sound: {error}."
            raise _Altered(size, sentence) from error
        if (checkpoint.size, checkpoint.origin) != (size, origin):
            raise _Altered(
                size, f"The stored checkpoint of {counted(size, 'event')} is another one's note."
            )
        return checkpoint


class _Altered(Exception):
    """The log is not what was hashed or signed."""

    def __init__(self, position: int, sentence: str) -> None:
        super().__init__(sentence)
        self.position = position


class _Slice:
    """Reads from a position on, for SLICE_SECONDS."""

    def __init__(
        self, transaction: Transaction, judge: _Judge, beside: Beside, position: int
    ) -> None:
        self._transaction = transaction
        self._judge = judge
        self._beside = beside
        self._start = self._held = position
        self._tree = CompactRange()
        self.passed = 0

    async def go(self, place: LogPass, clock: Callable[[], datetime]) -> LogPass:
        """Return the place after it; at the end of the log, that of a pass that has ended."""
        try:
            self._tree = CompactRange.from_bytes(place.position, place.tree)
            is_over = await self._read()
            await self._beside.note(self._tree.size, is_over=is_over)
        except _Altered as altered:
            self.passed = max(1, self.passed)
            found = place._replace(fault_position=altered.position, fault=str(altered))
            return found._replace(position=0, tree=b"", finished_at=clock())
        if not is_over:
            return place._replace(position=self._tree.size, tree=self._tree.to_bytes())
        return LogPass(0, b"", place.began_at, clock(), self._tree.size, None, None)

    async def _read(self) -> bool:
        """Read pages until the time is up, or the log is at its end: then return True."""
        ends_at = time.monotonic() + SLICE_SECONDS
        while True:
            head = await self._transaction.fetchrow(_HEAD)
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
        signed = await self._signed(start, last, None)
        ahead = [one for one in map(self._judge.checkpoint, signed) if one is not None]
        read, nodes = list[LogRow](), list[TreeNode]()
        for row in rows:
            *columns, in_order = row
            read.append(LogRow(*columns))
            leaf = self._judge.row(read[-1], tree.size + 1)
            nodes += completed_nodes(tree, leaf)
            tree.append(leaf)
            if not in_order:
                raise _Altered(tree.size, f"The event at position {tree.size} {OUT_OF_ORDER}.")
            self.passed += 1
            while ahead and ahead[0].size == tree.size:
                self._compare(ahead.pop(0))
        await self._beside.take(read, nodes)

    async def _signed(self, start: int, last: int | None, rows_max: int | None) -> Sequence[Row]:
        """Return the stored checkpoints that bind the log, as far as its lineages say.

        The database leaves out the others: a ledger's login can write any number of them.
        """
        origins, lineages = self._judge.origins, self._judge.lineages
        shared, lost = zip(*map(lineages.aside, origins), strict=True) if origins else ((), ())
        return await self._transaction.fetch(
            _SQL.slices_signed, start, last, origins, shared, lost, rows_max
        )

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
        for row in await self._signed(size, None, _BEYOND_MAX):
            # The log may have grown since its head was read; a checkpoint follows numbering.
            if self._judge.checkpoint(row) is not None:
                again = await self._transaction.fetchrow(_HEAD)
                if again is None or again["size"] < row["size"]:
                    raise _Altered(size + 1, f"A checkpoint covers {row['size']} events.")
