"""Making rows from a log's events, or from every nth stretch of it: page by page, in order."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import asyncpg

from service.core.garbage import collector_paused
from service.core.progress import Advance
from service.ledger.binding import Binding
from service.ledger.codec import Codec
from service.ledger.database import Connection, Row
from service.ledger.decoding import PAGE_BYTES_MAX, Keys, Unread, decode, is_full
from service.ledger.events import Recorded
from service.ledger.following.parking import NOT_OURS
from service.ledger.projector import Projector
from service.ledger.rebuild.apply import apply
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.sql import queries

_APPEND_ID: Final = attrgetter("append_id")
_SQL = queries("service.ledger.rebuild")

Mark = Callable[[int, BuildProgress], Awaitable[None]]


class LogPage(NamedTuple):
    """The events of a range of the log that concern a read model, up to the position `end`."""

    rows: Sequence[Row]
    end: int


class Recipe(NamedTuple):
    """How rows are made, in a form that can be passed to another process.

    The rows are made from events of the schema `ledger`, in tables of `schema`. If there are
    several `parts`, they take stretches of the log in turn, each of as many `positions` as a page
    has at most. This recipe is for part number `part`, counted from 0.
    """

    ledger: str
    name: str
    is_inline: bool
    projector: Projector
    codec: Codec
    schema: str
    positions: int
    part: int = 0
    parts: int = 1

    def stretches(self, target: int) -> range:
        """Return the positions after which this part's stretches begin, up to a target."""
        return range(self.part * self.positions, target, self.parts * self.positions)


class Turns(Protocol):
    """Whose turn it is to write: the progress of tables goes from part to part."""

    async def begin(self) -> BuildProgress:
        """Wait for this part's next turn; return what the tables hold then."""
        ...

    async def end(self, progress: BuildProgress) -> None:
        """Pass the turn to the next part, now that the tables hold this one."""
        ...


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes rows by a recipe. `reader` reads ahead while `writer` writes.

    `binding` is how our events are recognised, and `keys_of` opens their encrypted fields.
    `by_copy`: rows are written by COPY, for which nobody else may have to wait.
    """

    recipe: Recipe
    reader: Connection
    writer: Connection
    binding: Callable[[], Awaitable[Binding]]
    keys_of: Keys
    by_copy: bool = True

    async def load(
        self, progress: BuildProgress, target: int, advance: Advance, mark: Mark | None = None
    ) -> BuildProgress:
        """Apply the log a page a transaction; the next page is read meanwhile.

        `advance` gets the position after each of them. `mark` is called in its transaction, with
        the position before it and the progress after it.
        """
        if progress.position >= target:
            return progress
        ahead = self._read_ahead(progress.position, target)
        try:
            with collector_paused():
                while progress.position < target:
                    (rows, end), start = await ahead, progress.position
                    ahead = self._read_ahead(end, target)
                    async with self.writer.transaction():
                        progress = (await self.apply(progress, rows))._replace(position=end)
                        if mark is not None:
                            await mark(start, progress)
                    advance(end)
            await ahead
        finally:
            ahead.cancel()
        return progress

    async def take_turns(self, turns: Turns, target: int, *, may_skip: bool) -> None:
        """Apply this part's stretches of the log, each in its turn and in a transaction.

        A stretch is read while the one before it is applied, and decoded before its turn.
        """
        positions, starts = self.recipe.positions, self.recipe.stretches(target)
        ahead = self._read_ahead(starts.start, target)
        try:
            with collector_paused():
                for start in starts:
                    (rows, end) = await ahead
                    ahead = self._read_ahead(start + starts.step, target)
                    events = await self._decoded(rows, may_skip=may_skip)
                    progress = await turns.begin()
                    async with self.writer.transaction():
                        progress = (await self._written(progress, events))._replace(position=end)
                        progress = await self.apply_up_to(progress, min(start + positions, target))
                    await turns.end(progress)
            await ahead
        finally:
            ahead.cancel()

    async def apply_up_to(self, progress: BuildProgress, target: int) -> BuildProgress:
        """Apply the log in the caller's transaction, as that transaction sees it."""
        while progress.position < target:
            page = await self._read(self.writer, progress.position, target)
            progress = (await self.apply(progress, page.rows))._replace(position=page.end)
        return progress

    async def apply(self, progress: BuildProgress, rows: Sequence[Row]) -> BuildProgress:
        """Apply stored events, less those that are parked, which the live rows lack, too.

        An event that this service did not write counts as a bad one, like one that cannot be read:
        somebody put it into the log. If a key has been destroyed, personal fields are None, as in
        every replay.
        """
        events = await self._decoded(rows, may_skip=progress.may_skip)
        return await self._written(progress, events)

    async def _decoded(self, rows: Sequence[Row], *, may_skip: bool) -> Sequence[Recorded | Unread]:
        parked = await self._parked()
        kept = [row for row in rows if row["position"] not in parked] if parked else rows
        unread = list[Unread]() if may_skip else None
        binding = await self.binding()
        recorded = await decode(
            self.recipe.codec,
            self.keys_of,
            kept,
            personal=self.recipe.projector.reads_personal,
            unread=unread,
        )
        ours = binding.ours(kept)
        if len(ours) < len(kept):
            others = {row["append_id"] for row in kept} - {row["append_id"] for row in ours}
            recorded = _without(others, recorded, unread)
        return sorted([*recorded, *unread], key=_APPEND_ID) if unread else recorded

    async def _written(
        self, progress: BuildProgress, events: Sequence[Recorded | Unread]
    ) -> BuildProgress:
        writes, progress = progress.project(self.recipe.projector, events)
        try:
            await apply(self.writer, self.recipe.schema, writes, by_copy=self.by_copy)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError) as error:
            first, last = events[0].position, events[-1].position
            message = f"an event of positions {first} to {last} cannot be applied"
            raise RebuildRefused(f"{message}: {type(error).__name__}") from error
        return progress

    def _read_ahead(self, after: int, target: int) -> "asyncio.Task[LogPage]":
        return asyncio.create_task(self._read(self.reader, after, target))

    async def _read(self, connection: Connection, after: int, target: int) -> LogPage:
        """Return the next page after a position, up to the target at most."""
        recipe = self.recipe
        end = min(after + recipe.positions, target)
        query = _SQL.page.on(recipe.ledger)
        topics = [topic.__name__ for topic in recipe.projector.topics]
        rows = await connection.fetch(query, after, end, topics, PAGE_BYTES_MAX)
        return LogPage(rows, rows[-1]["position"] if is_full(rows) else end)

    async def _parked(self) -> set[int]:
        """Return the positions that the live rows lack; they stay parked until retried."""
        if self.recipe.is_inline:
            return set()
        rows = await self.writer.fetch(_SQL.parked.on(self.recipe.ledger), self.recipe.name)
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
