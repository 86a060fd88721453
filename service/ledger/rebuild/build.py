"""Building a read model beside its live tables: load, catch up, compare."""

import asyncio
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

import asyncpg

from service.core.garbage import collector_paused
from service.ledger.database import Connection, Row, always
from service.ledger.decoding import PAGE_BYTES_MAX, Unread, is_full
from service.ledger.events import Recorded
from service.ledger.following.parking import NOT_OURS
from service.ledger.ledger import Transaction
from service.ledger.read_model import ReadModel, RebuildRefused
from service.ledger.rebuild import shadow
from service.ledger.rebuild.apply import apply
from service.ledger.rebuild.compare import Compared, compare
from service.ledger.rebuild.parked import ParkedSets
from service.ledger.rebuild.progress import BuildProgress, SkippedEvent
from service.ledger.sql import Sql, queries

PAGE_POSITIONS = 2_000
"""Log positions read and written at a time: about a megabyte, and fewer where events are large.
Larger pages do not fit into the socket's buffers, so that less of the reading is done while the
page before is written."""
CLOSE_POSITIONS = 500
CLOSE_BYTES = PAGE_BYTES_MAX
"""So near to the head, what is left is applied while writers wait: some milliseconds."""
ROUNDS_MAX = 50
"""Of catching up. Each is shorter than the one before, unless writers outrun the rebuild."""

_APPEND_ID: Final = attrgetter("append_id")
_SQL = queries("service.ledger.rebuild")
_LOG_RANGE = queries("service.ledger").log_range


class LogPage(NamedTuple):
    """The events of a range of the log that concern a read model, up to the position `end`."""

    rows: Sequence[Row]
    end: int


class Waiting(NamedTuple):
    """How many streams of a read model are parked, and how many of their events."""

    streams: int
    events: int


class VerifiedModel(NamedTuple):
    """The result of a comparison. `put_aside` are bad events, which the replayed rows lack.

    `parked` events are in neither of the two: nothing is known of their rows.
    """

    compared: Compared
    put_aside: Sequence[SkippedEvent]
    parked: Waiting


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes tables of a read model in another schema, and brings them up to date.

    Each step takes the progress that the tables are at and returns the one after it. `reader` and
    `writer` are the owner's connections: one reads ahead while the other one writes. `advance`
    receives the number of positions passed.
    """

    model: ReadModel
    schema: str
    reader: Connection
    writer: Connection
    advance: Callable[[int], object]

    async def target(self) -> int:
        """Return how far the live rows are: the log's head, or the read model's checkpoint."""
        if self.model.kind == "catch-up":
            return await self.number(_SQL.checkpoint, self.model.name) or 0
        return await self.number(_SQL.head) or 0

    async def number(self, sql: Sql, *args: object) -> int | None:
        """Return one number of the ledger's."""
        return await self.writer.fetchval(sql.on(self.model.ledger.name), *args)

    async def build(self, *, may_skip: bool) -> BuildProgress:
        """Make the tables from nothing, up to a position near the live rows'."""
        indexes = await shadow.create(self.writer, self.model)
        progress = await self.load(BuildProgress(may_skip=may_skip), await self.target())
        await shadow.finish(self.writer, self.model, indexes)
        return await self.catch_up(progress)

    async def catch_up(self, progress: BuildProgress) -> BuildProgress:
        """Come near to the live rows; raises RebuildRefused when writers are faster."""
        for _ in range(ROUNDS_MAX):
            target = await self.target()
            if await self.is_close(progress, target):
                return progress
            progress = await self.load(progress, target)
        raise RebuildRefused(
            f"{self.model.name} cannot be brought up to date: events come faster than they are "
            "applied. Try again when there is less traffic."
        )

    async def is_close(self, progress: BuildProgress, target: int, times: int = 1) -> bool:
        """Return whether what is left up to a position is little enough, or `times` as much."""
        after = progress.position
        if target - after > times * CLOSE_POSITIONS:
            return False
        left = await self.number(_SQL.log_bytes, after, target, self.model.topics)
        return (left or 0) <= times * CLOSE_BYTES

    async def compare(self, progress: BuildProgress) -> VerifiedModel:
        """Compare with the live rows within one snapshot, which ends without a trace.

        What the snapshot has of the log beyond our position is applied first and rolled back: for
        inline rows the events without a number too, whose rows are there since they committed.
        """
        live = self.model.ledger.name
        transaction = self.writer.transaction(isolation="repeatable_read")
        await transaction.start()
        try:
            progress = await self.apply_up_to(progress, await self.target())
            if self.model.kind == "inline":
                progress = await self._apply_unnumbered(progress)
            compared = await compare(self.writer, self.model, live, self.schema)
            waiting = await self.writer.fetchrow(_SQL.parked_count.on(live), self.model.name)
            return VerifiedModel(compared, progress.skipped, Waiting(*always(waiting)))
        finally:
            await transaction.rollback()

    async def apply_up_to(self, progress: BuildProgress, target: int) -> BuildProgress:
        """Apply the log in the caller's transaction, as that transaction sees it."""
        while progress.position < target:
            page = await self._read(self.writer, progress.position, target)
            progress = (await self._apply(progress, page.rows))._replace(position=page.end)
        return progress

    async def _apply_unnumbered(self, progress: BuildProgress) -> BuildProgress:
        query, last = _SQL.unnumbered.on(self.model.ledger.name), 0
        binding = await self.model.ledger.binding()
        while rows := await self.writer.fetch(query, last, self.model.topics, PAGE_BYTES_MAX):
            ours = [row for row in rows if binding.is_ours(*row[1:7])]  # others get no number
            progress, last = await self._apply(progress, ours), rows[-1]["append_id"]
        return progress

    async def load(self, progress: BuildProgress, target: int) -> BuildProgress:
        """Apply the log a page a transaction; the next page is read meanwhile."""
        if progress.position >= target:
            return progress
        ahead = self._read_ahead(progress.position, target)
        try:
            with collector_paused():
                while progress.position < target:
                    (rows, end), start = await ahead, progress.position
                    ahead = self._read_ahead(end, target)
                    async with self.writer.transaction():
                        progress = (await self._apply(progress, rows))._replace(position=end)
                        await self._mark(start, progress)
                    self.advance(end - start)
            await ahead
        finally:
            ahead.cancel()
        return progress

    async def _mark(self, after: int, progress: BuildProgress) -> None:
        """Note how far kept tables are: they outlive a rollback that is interrupted."""
        if self.schema != self.model.previous_schema:
            return
        mark = _SQL.kept_mark.on(self.model.ledger.name)
        await self.writer.execute(mark, self.model.name, progress.position)
        if self.model.kind == "catch-up":
            await ParkedSets(self.model, self.writer).pass_over(after, progress)

    def _read_ahead(self, after: int, target: int) -> "asyncio.Task[LogPage]":
        return asyncio.create_task(self._read(self.reader, after, target))

    async def _read(self, connection: Connection, after: int, target: int) -> LogPage:
        """Return the next page after a position, up to the target at most."""
        end = min(after + PAGE_POSITIONS, target)
        query = _LOG_RANGE.on(self.model.ledger.name)
        rows = await connection.fetch(query, after, end, self.model.topics, PAGE_BYTES_MAX)
        return LogPage(rows, rows[-1]["position"] if is_full(rows) else end)

    async def _apply(self, progress: BuildProgress, rows: Sequence[Row]) -> BuildProgress:
        """Apply stored events, less those that are parked: the live rows lack them, too.

        What this service did not write is a bad event like one that cannot be read: somebody put it
        into the log. Where a key has been destroyed, personal fields are None, as in every replay.
        """
        parked = await self._parked()
        kept = [row for row in rows if row["position"] not in parked] if parked else rows
        unread = list[Unread]() if progress.may_skip else None
        ledger = self.model.ledger
        binding = await ledger.binding()
        recorded = await Transaction(ledger, self.writer, binding).decode(
            kept, personal=self.model.projector.reads_personal, unread=unread
        )
        others = {row["append_id"] for row in kept if not binding.is_ours(*row[1:7])}
        if others:
            recorded = _without(others, recorded, unread)
        events = sorted([*recorded, *unread], key=_APPEND_ID) if unread else recorded
        writes, progress = progress.project(self.model.projector, events)
        try:
            await apply(self.writer, self.schema, writes)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError) as error:
            first, last = recorded[0].position, recorded[-1].position
            message = f"an event of positions {first} to {last} cannot be applied"
            raise RebuildRefused(f"{message}: {type(error).__name__}") from error
        return progress

    async def _parked(self) -> set[int]:
        """Return the positions that the live rows lack; they stay parked until retried."""
        if self.model.kind == "inline":
            return set()
        rows = await self.writer.fetch(_SQL.parked.on(self.model.ledger.name), self.model.name)
        return {row["position"] for row in rows}


def _without(
    others: Container[int], recorded: Sequence[Recorded], unread: list[Unread] | None
) -> list[Recorded]:
    """Return the events that this service wrote; add the others to `unread`.

    Raises RebuildRefused where that is None.
    """
    kept = list[Recorded]()
    for one in recorded:
        if one.append_id not in others:
            kept.append(one)
        elif unread is None:
            raise RebuildRefused(f"the event at position {one.position}: {NOT_OURS}")
        else:
            place = (one.position, one.append_id, one.stream_id, one.version)
            unread.append(Unread(*place, NOT_OURS))
    return kept
