"""Building a read model beside its live tables: load, catch up, compare."""

import asyncio
import gc
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

import asyncpg

from service.ledger.database import Connection, Row
from service.ledger.decoding import Unread
from service.ledger.events import Recorded
from service.ledger.projector import Write
from service.ledger.read_model import ReadModel, RebuildRefused
from service.ledger.rebuild.apply import apply
from service.ledger.rebuild.compare import Compared, compare
from service.ledger.rebuild.log import Log
from service.ledger.rebuild.parked import ParkedSets
from service.ledger.rebuild.shadow import Shadow
from service.ledger.rebuild.skipped import SkippedEvent, SkippedEvents
from service.ledger.sql import Sql, queries

PAGE_POSITIONS = 2_000
"""Log positions read and written at a time: about a megabyte. Larger pages do not fit into the
socket's buffers, so that less of the reading is done while the page before is written."""
CLOSE_POSITIONS = 500
"""So near to the head, what is left is applied while writers wait: some milliseconds."""
ROUNDS_MAX = 50
"""Of catching up. Each is shorter than the one before, unless writers outrun the rebuild."""

_SQL = queries("service.ledger.rebuild")


class Waiting(NamedTuple):
    """How many streams of a read model are parked, and how many events of them."""

    streams: int
    events: int


class VerifiedModel(NamedTuple):
    """What comparing came to. `put_aside` are bad events, which the replayed rows lack.

    `parked` are in neither of the two: nothing is said of their rows.
    """

    compared: Compared
    put_aside: Sequence[SkippedEvent]
    parked: Waiting


class Builder:
    """Tables of a read model in another schema, and the log's position that they are at."""

    def __init__(
        self,
        model: ReadModel,
        schema: str,
        position: int,
        connections: tuple[Connection, Connection],
        advance: Callable[[int], object],
    ) -> None:
        """Take the owner's two connections: one reads ahead while the other one writes.

        `advance` is told how many positions were passed.
        """
        self.model = model
        self.schema = schema
        self.position = position
        self.events = 0
        self.put_aside = SkippedEvents(is_allowed=model.kind == "catch-up")
        self._log = Log(model)
        self._reader, self.writer = connections
        self._advance = advance

    @property
    def state(self) -> tuple[int, int, SkippedEvents]:
        """How far the tables are: to be set again where a transaction is rolled back."""
        return self.position, self.events, self.put_aside.copy()

    @state.setter
    def state(self, was: tuple[int, int, SkippedEvents]) -> None:
        self.position, self.events, self.put_aside = was

    async def target(self) -> int:
        """Return how far the live rows are: the log's head, or the read model's checkpoint."""
        if self.model.kind == "catch-up":
            return await self.asked(_SQL.checkpoint, self.model.name) or 0
        return await self.asked(_SQL.head) or 0

    async def asked(self, sql: Sql, *args: object) -> int | None:
        """Return one number of the ledger's."""
        return await self.writer.fetchval(sql.on(self.model.ledger.name), *args)

    async def build(self) -> None:
        """Make the tables from nothing, up to a position near the live rows'."""
        shadow = Shadow(self.model)
        await shadow.create(self.writer)
        await self._load(await self.target())
        await shadow.index(self.writer)
        await self.catch_up()

    async def catch_up(self) -> None:
        """Come near to the live rows; raises RebuildRefused when writers are faster."""
        for _ in range(ROUNDS_MAX):
            target = await self.target()
            if target - self.position <= CLOSE_POSITIONS:
                return
            await self._load(target)
        raise RebuildRefused(
            f"{self.model.name} cannot be brought up to date: events come faster than they are "
            "applied. Try again when there is less traffic."
        )

    async def compare(self) -> VerifiedModel:
        """Compare with the live rows within one snapshot, which ends without a trace.

        What the snapshot has of the log beyond our position is applied first and rolled back: for
        inline rows the events without a number too, whose rows are there since they committed.
        """
        before = self.state
        transaction = self.writer.transaction(isolation="repeatable_read")
        await transaction.start()
        try:
            await self.apply_up_to(await self.target())
            if self.model.kind == "inline":
                await self._apply(await self._log.unnumbered(self.writer))
            compared = await compare(self.writer, self.model, self.model.ledger.name, self.schema)
            name, where = self.model.name, self.model.ledger.name
            waiting = await self.writer.fetchrow(_SQL.parked_count.on(where), name)
            assert waiting is not None  # noqa: S101 - aggregates have a row
            return VerifiedModel(compared, self.put_aside.events, Waiting(*waiting))
        finally:
            self.state = before
            await transaction.rollback()

    async def apply_up_to(self, target: int) -> None:
        """Apply the log in the caller's transaction, as that transaction sees it."""
        while self.position < target:
            end = min(self.position + PAGE_POSITIONS, target)
            await self._apply(await self._log.between(self.writer, self.position, end))
            self.position = end

    async def _load(self, target: int) -> None:
        """Apply the log a page a transaction; the next page is read meanwhile."""
        if self.position >= target:
            return
        page = self._read(self.position, target)
        try:
            with _collector_resting():
                while self.position < target:
                    rows, start = await page, self.position
                    end = min(start + PAGE_POSITIONS, target)
                    page = self._read(end, target)
                    async with self.writer.transaction():
                        await self._apply(rows)
                        await self._mark(start, end)
                    self.position = end
                    self._advance(end - start)
            await page
        finally:
            page.cancel()

    async def _mark(self, after: int, position: int) -> None:
        """Note how far kept tables are: they outlive a rollback that is interrupted."""
        if self.schema != self.model.previous_schema:
            return
        await self.writer.execute(
            _SQL.kept_mark.on(self.model.ledger.name), self.model.name, position
        )
        if self.model.kind == "catch-up":
            aside = self.put_aside.events
            await ParkedSets(self.model).pass_over(self.writer, after, position, aside)

    def _read(self, after: int, target: int) -> "asyncio.Task[list[Row]]":
        end = min(after + PAGE_POSITIONS, target)
        return asyncio.create_task(self._log.between(self._reader, after, end))

    async def _apply(self, rows: list[Row]) -> None:
        parked = await self._parked()
        kept = [row for row in rows if row[0] not in parked] if parked else rows
        unread = list[Unread]() if self.put_aside.is_allowed else None
        recorded = await self._log.decode(self.writer, kept, unread)
        try:
            await apply(self.writer, self.schema, self._writes(recorded, unread or ()))
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError) as error:
            first, last = recorded[0].position, recorded[-1].position
            message = f"an event of positions {first} to {last} cannot be applied"
            raise RebuildRefused(f"{message}: {type(error).__name__}") from error
        self.events += len(recorded)

    def _writes(self, recorded: Sequence[Recorded], unread: Sequence[Unread]) -> Iterator[Write]:
        project, aside = self.model.projector.project, self.put_aside
        every = sorted([*recorded, *unread], key=attrgetter("append_id")) if unread else recorded
        for event in every:
            if aside.follows(event):
                continue
            if isinstance(event, Unread):
                aside.take(event, event.fault)
                continue
            try:
                writes = tuple(project(event))
            except Exception as error:
                fault = type(error).__name__
                if not aside.is_allowed:
                    message = f"the event at position {event.position} cannot be applied: {fault}"
                    raise RebuildRefused(message) from error
                aside.take(event, fault)
            else:
                yield from writes

    async def _parked(self) -> set[int]:
        """Return the positions that the live rows lack; they stay put aside until retried."""
        if self.model.kind == "inline":
            return set()
        rows = await self.writer.fetch(_SQL.parked.on(self.model.ledger.name), self.model.name)
        return {row["position"] for row in rows}


@contextmanager
def _collector_resting() -> Generator[None]:
    """Do without Python's collector of cycles, of which pages of rows make none.

    It would go through them again and again: measured, a third of the time of a rebuild.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
