"""Building a read model beside its live tables: load, catch up, compare."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from service.core.forked_processes import Spares
from service.ledger.database import Connection, always
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.encryption import DataKey
from service.ledger.read_model import ReadModel
from service.ledger.rebuild import shadow
from service.ledger.rebuild.compare import Compared, compare
from service.ledger.rebuild.filling import PART_EVENTS_MIN, fill
from service.ledger.rebuild.parked import ParkedSets
from service.ledger.rebuild.progress import BuildProgress, SkippedEvent
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.row_maker import Recipe, RowMaker
from service.ledger.rebuild.together import together
from service.ledger.sql import Sql, queries
from service.ledger.transaction import Transaction

PAGE_POSITIONS = 4_000
"""Log positions read and written at a time: a megabyte or two of events, and fewer positions where
events are large. Smaller pages cost PostgreSQL more, a tenth for half of it."""
CLOSE_POSITIONS = 500
CLOSE_BYTES = PAGE_BYTES_MAX
"""So near to the head, what is left is applied while writers wait: some milliseconds."""
ROUNDS_MAX = 50
"""Of catching up. Each is shorter than the one before, unless writers outrun the rebuild."""

_SQL = queries("service.ledger.rebuild")


class Waiting(NamedTuple):
    """How many streams of a read model are parked, and how many of their events."""

    streams: int
    events: int


class VerifiedModel(NamedTuple):
    """The result of a comparison. `put_aside` are bad events, which the replayed rows lack.

    `parked` events are in neither copy: nothing is known about their rows.
    """

    compared: Compared
    put_aside: Sequence[SkippedEvent]
    parked: Waiting


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes tables of a read model in another schema, and brings them up to date.

    Each step takes the progress of the tables and returns the next one. `reader` and `writer` are
    the owner's connections: one reads ahead while the other one writes. `advance` receives the
    number of positions passed. `spares` are processes that may fill empty tables beside this one,
    with two connections of their own to `database_url`.
    """

    model: ReadModel
    schema: str
    reader: Connection
    writer: Connection
    advance: Callable[[int], object]
    database_url: str
    spares: Spares

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
        later = await shadow.create(self.writer, self.model)
        progress = await self._fill(await self.target(), may_skip=may_skip)
        connections = (self.writer, self.reader)[: 1 + len(self.spares)]
        await shadow.finish(connections, later)
        return await self.catch_up(progress)

    async def _fill(self, target: int, *, may_skip: bool) -> BuildProgress:
        """Fill the empty tables: by several processes where that is faster, and possible."""
        is_open = not self.model.projector.reads_personal  # other processes get no keys
        parts = min(1 + len(self.spares), target // PART_EVENTS_MIN)
        if parts > 1 and is_open:
            where = (self.spares, self.database_url)
            maker = self._maker(parts)
            return await fill(maker, *where, target, self.advance, may_skip=may_skip)
        return await self.load(BuildProgress(may_skip=may_skip), target)

    async def catch_up(self, progress: BuildProgress) -> BuildProgress:
        """Catch up with the live rows, almost; raises RebuildRefused if writers are faster."""
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

    async def compare_and_analyze(self, progress: BuildProgress) -> VerifiedModel:
        """Compare with the live rows; the planner's statistics are made meanwhile."""
        analyzing = shadow.analyze(self.reader, self.model, self.schema)
        return always((await together(self.compare(progress), analyzing))[0])

    async def compare(self, progress: BuildProgress) -> VerifiedModel:
        """Compare with the live rows within one snapshot, which is rolled back.

        Events of the log beyond our position, as far as the snapshot has them, are applied first
        and rolled back. For inline rows, these include the events without a number, whose rows
        exist since they committed.
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
        """Apply the log in the caller's transaction, as that transaction sees it.

        It may hold locks that others wait for.
        """
        return await self._maker(by_copy=False).apply_up_to(progress, target)

    async def _apply_unnumbered(self, progress: BuildProgress) -> BuildProgress:
        query, last = _SQL.unnumbered.on(self.model.ledger.name), 0
        binding, maker = await self.model.ledger.binding(), self._maker()
        while rows := await self.writer.fetch(query, last, self.model.topics, PAGE_BYTES_MAX):
            ours = binding.ours(rows)  # others get no number
            progress, last = await maker.apply(progress, ours), rows[-1]["append_id"]
        return progress

    async def load(self, progress: BuildProgress, target: int) -> BuildProgress:
        """Apply the log a page a transaction, in this process alone."""
        passed = progress.position

        def advance(position: int) -> None:
            nonlocal passed
            self.advance(position - passed)
            passed = position

        return await self._maker().load(progress, target, advance, self._mark)

    def _maker(self, parts: int = 1, *, by_copy: bool = True) -> RowMaker:
        """Return what makes rows: of the whole log, or of the first of so many parts of it."""
        model = self.model
        recipe = Recipe(
            model.ledger.name,
            model.name,
            model.kind == "inline",
            model.projector,
            model.ledger.codec,
            self.schema,
            PAGE_POSITIONS,
            parts=parts,
        )
        where = (self.reader, self.writer)
        return RowMaker(recipe, *where, model.ledger.binding, self._keys_of, by_copy)

    async def _keys_of(self, key_ids: set[UUID]) -> dict[UUID, DataKey]:
        binding = await self.model.ledger.binding()
        return await Transaction(self.model.ledger, self.writer, binding).data_keys(key_ids)

    async def _mark(self, after: int, progress: BuildProgress) -> None:
        """Note how far kept tables are: they outlive a rollback that is interrupted."""
        if self.schema != self.model.previous_schema:
            return
        mark = _SQL.kept_mark.on(self.model.ledger.name)
        await self.writer.execute(mark, self.model.name, progress.position)
        if self.model.kind == "catch-up":
            await ParkedSets(self.model, self.writer).pass_over(after, progress)
