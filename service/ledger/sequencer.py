"""Numbering events after they have committed (decision 2).

Positions have no gaps, and a reader that remembers the last position never misses an event: only
committed rows get positions, by one holder of a row lock. Within a stream, version n+1 draws its
append_id after n has committed, so the order within streams holds. While the sequencer numbers
events, it extends the Merkle tree over them (decision 21). An event that this service did not write
gets no number: it is set aside, and the log continues (decision 45).
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import structlog
from asyncpg import UniqueViolationError

from service.ledger.binding import binding_of
from service.ledger.codec import happened_at
from service.ledger.database import (
    Connection,
    LedgerError,
    LedgerUnavailable,
    Pool,
    Row,
    transaction_on,
)
from service.ledger.event_macs import FIRST_KEY, UNBOUND, EventKeys
from service.ledger.floor import LOWEST, Floor
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries

BATCH_MAX = 2000
"""Events numbered in one transaction."""
BATCH_BYTES_MAX = 32 << 20
"""Of their states, which PostgreSQL reads and hashes. The event that reaches them is the last."""
NUMBERING_SECONDS_MAX = 10.0
"""How long another process may hold the head while a caller waits for numbers."""
BATCH_SECONDS_MAX = 30.0
"""Longer than a request may wait: a slow disk must still get a batch done."""
TREE_PART = 50_000
"""Events whose hashes join the tree of an older log in one transaction: about half a second."""
LAG_POSITIONS = 10_000
"""How far before the log's end the lag begins to count: dead rows that a reader passes in a few
milliseconds, and more events than are appended beside any request."""

_WHOLE_LOG: Final = 2**62

_SQL = queries("service.ledger")

log = structlog.get_logger()


class _NotOurs(Exception):
    """A queued event does not exist, was not written by us, or does not continue its stream.

    `keys` are those that were used to find that out.
    """

    def __init__(self, append_ids: Sequence[int], keys: EventKeys) -> None:
        super().__init__(f"{len(append_ids)} events")
        self.append_ids = append_ids
        self.keys = keys


class _InLog(Exception):
    """A position or an event that was to be numbered is in the log already."""


class SequencingTimeout(LedgerUnavailable):
    """Events wait for their numbers longer than a caller can. Nothing is wrong with the log."""


class HeadAltered(Exception):
    """The head of a log does not match its events, so nothing can be numbered."""


class Lag(NamedTuple):
    """How far numbering is behind: events, when the oldest of them happened, the log's size."""

    waiting: int
    oldest_at: datetime | None
    size: int


class Sequencer:
    """Numbers one ledger's events. Any number may run; a row lock makes one of them the holder."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._database = ledger.database
        self._halvings = 0
        self._oldest = UNBOUND
        self._floor = Floor(self._database)

    async def step(self) -> int:
        """Give one batch positions; return how many events got one, 0 when idle or not the holder.

        An idle step is one read: polling with a lock would draw a transaction id each time. A batch
        that was not done in time is tried with half as many events, down to one; batches grow again
        while they are quick.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            numbered = await self._step()
        except LedgerUnavailable:
            self._halvings = min(self._halvings + 1, BATCH_MAX.bit_length())
            raise
        if numbered and self._halvings and clock() - began < BATCH_SECONDS_MAX / 4:
            self._halvings -= 1
        return numbered

    async def _step(self) -> int:
        while True:
            async with self._database.background.connection(BATCH_SECONDS_MAX) as connection:
                if not await self._floor.waits(connection):
                    return 0
                try:
                    async with transaction_on(connection):
                        head = await self._hold(connection)
                        if head is None or head["tree"] is not None:
                            return await self._number(connection, head, self._floor.append_id)
                        await self._grow(connection, head)
                except _NotOurs as found:
                    if self._floor.append_id != LOWEST:  # one may follow an event below it
                        self._floor.forget()
                        continue
                    if await self._ledger.has_other_keys(found.keys):
                        continue
                    async with transaction_on(connection):
                        held = await self._hold(connection)  # or two would set it aside
                        if held is None or not await self._set_aside(connection, found):
                            return 0
                except _InLog:
                    async with transaction_on(connection):
                        if await self._hold(connection) is None:
                            return 0
                        await self._unqueue(connection)

    async def number_committed(self, seconds_max: float = NUMBERING_SECONDS_MAX) -> None:
        """Wait until all events that have committed by now have numbers.

        Raises SequencingTimeout where another process has held the head for `seconds_max`.
        """
        self._floor.forget()
        lag, clock = await self._lag_of_all(), asyncio.get_running_loop().time
        goal, ends_at = lag.size + lag.waiting, clock() + seconds_max
        while lag.waiting and lag.size < goal:
            if not await self.step():  # another process is at it
                if clock() > ends_at:
                    raise SequencingTimeout("events wait for their numbers")
                await asyncio.sleep(0.01)
            lag = await self._lag_of_all()

    async def number(self, connection: Connection) -> int:
        """Give one batch positions in the caller's transaction; return 0 if another process does.

        Also where the log has no tree yet: `step` makes it, which may take minutes. And where
        something was set aside.
        """
        head = await self._hold(connection)
        if head is not None and head["tree"] is None:
            return 0
        try:
            async with transaction_on(connection):  # a savepoint
                return await self._number(connection, head, LOWEST)
        except _NotOurs as found:
            if not await self._ledger.has_other_keys(found.keys):
                await self._set_aside(connection, found)
            return 0
        except _InLog:
            await self._unqueue(connection)
            return 0

    async def _hold(self, connection: Connection) -> Row | None:
        return await connection.fetchrow(_SQL.sequencer_hold.on(self._database.schema))

    async def _number(self, connection: Connection, head: Row | None, floor: int) -> int:
        """Give a batch positions, of what was appended beyond an id.

        Raises _NotOurs or _InLog where that must not be committed.
        """
        if head is None:
            return 0
        schema = self._database.schema
        try:
            tree = CompactRange.from_bytes(head["size"], head["tree"])
        except ValueError as error:
            raise HeadAltered(f"the head of {schema} has a tree of another size") from error
        events_max = max(1, BATCH_MAX >> self._halvings)
        bytes_max = max(1, BATCH_BYTES_MAX >> self._halvings)
        keys = await self._ledger.event_keys()
        find, *boundary = self._ledger.bound
        if not keys.are_all or self._oldest < max(keys.keys):
            binding = binding_of(schema, keys, await connection.fetch(find.on(schema), *boundary))
            binding.refuse_overtaken()
            self._oldest = binding.oldest
        numbering = _SQL.sequencer_number.on(schema)
        batch = (head["size"], events_max, bytes_max)
        try:
            rows = await connection.fetch(numbering, *batch, *boundary, floor)
        except UniqueViolationError as error:
            raise _InLog from error
        _check(keys, rows, self._oldest)
        tree.extend(row["leaf_hash"] for row in rows)
        if rows:
            await connection.execute(_SQL.sequencer_advance.on(schema), tree.size, tree.to_bytes())
        return len(rows)

    async def _set_aside(self, connection: Connection, found: _NotOurs) -> int:
        """Set aside what must not be numbered; return how much that was."""
        setting_aside = _SQL.sequencer_set_aside.on(self._database.schema)
        count: int = await connection.fetchval(setting_aside, found.append_ids) or 0
        if count:
            log.error("events set aside", ledger=self._ledger.name, count=count)
        return count

    async def _unqueue(self, connection: Connection) -> None:
        """Take out of the queue what has a number; raises HeadAltered where nothing there has."""
        schema = self._database.schema
        rows = await connection.fetch(_SQL.sequencer_unqueue.on(schema))
        if not rows:
            raise HeadAltered(f"the log of {schema} has events behind its head")
        log.error("events queued that have numbers", ledger=schema, count=len(rows))

    async def _grow(self, connection: Connection, head: Row) -> None:
        """Make the next part of the tree of a log that is older than trees, and keep it."""
        schema, size = self._database.schema, head["size"]
        try:
            tree = CompactRange.from_bytes(head["part_size"], head["part"])
        except ValueError as error:
            raise HeadAltered(f"the head of {schema} has a part of another size") from error
        end = min(tree.size + TREE_PART, size)
        rows = await connection.fetch(_SQL.leaf_hashes.on(schema), tree.size, end)
        tree.extend(row["leaf_hash"] for row in rows)
        if tree.size != end:
            raise LedgerError(f"positions up to {end} are missing from the log")
        await connection.execute(_SQL.sequencer_grow.on(schema), tree.size, tree.to_bytes())

    async def lag(self) -> Lag:
        """Return how far numbering is behind, but for what was appended LAG_POSITIONS ago."""
        return await self._lag(self._database.reads, LAG_POSITIONS)

    async def _lag_of_all(self) -> Lag:
        return await self._lag(self._database.background, _WHOLE_LOG)

    async def _lag(self, pool: Pool, positions: int) -> Lag:
        row = await pool.fetchrow(_SQL.sequencer_lag, positions)
        if row is None:
            return Lag(0, None, 0)
        return Lag(row["waiting"], happened_at(row["oldest"]), row["size"] or 0)


def _check(keys: EventKeys, rows: Sequence[Row], oldest: int) -> None:
    """Raise _NotOurs unless this service wrote these events, and none is missing before them.

    Events without a MAC count as ours up to the first `EventsBound`, and those of a key up to the
    event that retires it: `oldest` is the first key that has not been retired so far. An
    `EventsBound` never counts without a MAC. A genuine
    event that was set aside, and comes back without the one before it, would leave a permanent gap
    in its stream.
    """
    others: list[int] = []
    for append_id, leaf_hash, is_boundary, digest, mac, is_next in rows:
        is_whole = leaf_hash is not None and is_next
        needed = max(oldest, FIRST_KEY) if is_boundary else oldest
        if not is_whole or not keys.is_ours(digest, mac, oldest=needed):
            others.append(append_id)
        elif is_boundary and mac is not None:
            oldest = mac[0]
    if others:
        raise _NotOurs(others, keys)
