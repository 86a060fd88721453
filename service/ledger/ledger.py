"""Appending to a ledger and reading its streams."""

import asyncio
import math
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import InitVar, dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

import structlog

from service.core.clock import Clock, to_milliseconds
from service.ledger.binding import BOUND_TOPIC, Binding, binding_of, boundary_stream
from service.ledger.codec import Codec
from service.ledger.database import (
    AlreadyExists,
    Database,
    Row,
    SchemaChanged,
    always,
)
from service.ledger.decoding import StoredRow, Unread, decode
from service.ledger.encryption import DataKey, MasterKeys
from service.ledger.event_macs import EventKeys
from service.ledger.events import Catalogue, Meta, Recorded
from service.ledger.folding import Folding, KeptState, KeptStates, Source, read_on
from service.ledger.projector import Projector
from service.ledger.service_keys import EventRoots, GetSecrets
from service.ledger.sql import Sql, queries
from service.ledger.transaction import (
    AppendConflict,
    NotAppended,
    PublicIdTaken,
    StreamLocked,
    StreamPart,
    Transaction,
)
from service.ledger.writing import Append, Decided, Outcome, Proposal, WriteBatch

T = TypeVar("T")
E = TypeVar("E", bound=StoredRow)
S = TypeVar("S")

ATTEMPTS_MAX: Final = 8
"""How often a command that conflicts is decided again before it is given up."""

UNBOUND_SECONDS: Final = 60.0
"""How often a process asks whether events are bound by now, where they were not."""

LOCKED_SECONDS: Final = 0.005
LOCKED_SECONDS_MAX: Final = 0.1

_SQL = queries("service.ledger")

log = structlog.get_logger()


@dataclass(eq=False)
class Ledger:
    """One of the three ledgers: accounts, live or test.

    `projectors` write in the transaction of the append. `secrets` are the service's own: by them,
    events are bound to it. `on_append` wakes the sequencer, where this process has one.
    """

    database: Database
    catalogue: InitVar[Catalogue]
    projectors: Sequence[Projector]
    master_keys: MasterKeys
    clock: Clock
    secrets: GetSecrets

    def __post_init__(self, catalogue: Catalogue) -> None:
        """Name the ledger after its schema."""
        self.name = self.database.schema
        self.on_append: Callable[[], None] = lambda: None
        self.codec = Codec(self.name, catalogue)
        self._event_keys: tuple[EventRoots, EventKeys] | None = None
        self._binding: Binding | None = None
        self._asked_at = 0.0
        self.kept = KeptStates()

    async def reachable(self) -> None:
        """Read from a table that only grows; raises LedgerUnavailable.

        Queues have a dead row for each entry that was removed since anybody's oldest snapshot.
        """
        await self.database.reads.fetchrow(_SQL.any_event)

    async def event_keys(self, *, anew: bool = False) -> EventKeys:
        """Return the keys that bind events to the service: from memory, unless `anew`."""
        roots, known = (await self.secrets(anew=anew)).events, self._event_keys
        if known is None or known[0] is not roots:
            known = self._event_keys = roots, roots.of_ledger(self.name)
        return known[1]

    async def has_other_keys(self, known: EventKeys) -> bool:
        """Read the event keys again; return whether they are others than those `known` to be.

        `known` are the keys by which something was judged: this process may have read others since.
        """
        return await self.event_keys(anew=True) is not known

    async def binding(self) -> Binding:
        """Return how to recognise events: from memory, once only the newest key binds later ones.

        Until then, the log is read from time to time to find out whether that is so; and each time
        where an event key does not open, as that may have retired those that this process has.
        """
        now = asyncio.get_running_loop().time()
        keys, known = await self.event_keys(), self._binding
        if known is not None and known.keys is not keys:
            known = known._replace(keys=keys)
        if known is None:
            known = binding_of(self.name, keys, ())
            self._asked_at = -math.inf
        is_due = not keys.are_all or now > self._asked_at + UNBOUND_SECONDS
        if is_due and not known.is_settled:
            known = binding_of(self.name, keys, await self.database.reads.fetch(*self.bound))
            self._asked_at = now
        if known.is_overtaken and not (self._binding and self._binding.is_overtaken):
            log.error("event key missing", ledger=self.name)
        self._binding = known
        return known

    async def placing(self, events: Iterable[tuple[int | None, bytes | None]]) -> Binding:
        """Return how to recognise some events, given their append_ids and MACs.

        It looks positions up where a key was retired, and asks nothing otherwise.
        """
        return await (await self.binding()).placing(self.database.reads.fetch, events)

    async def ours(self, stored: Sequence[E]) -> list[E]:
        """Return those of stored events, with their positions and MACs, that this service wrote."""
        binding = await self.binding()
        found = binding.ours(stored)
        if len(found) < len(stored) and await self.has_other_keys(binding.keys):
            return (await self.binding()).ours(stored)  # of a key that was not known yet
        return found

    @property
    def bound(self) -> tuple[Sql, UUID, str]:
        """What finds where the log says that later events are bound: a statement, its arguments."""
        return _SQL.bound, boundary_stream(self.name), BOUND_TOPIC

    @asynccontextmanager
    async def transaction(
        self, *, background: float | None = None
    ) -> AsyncGenerator[Transaction, None]:
        """Open the one transaction of a command that `write` cannot write.

        `background` seconds where no request waits for it.

        Raises AppendConflict or PublicIdTaken if nothing was written. After LedgerUnavailable that
        is unknown until the command is repeated.
        """
        pool = self.database.writes if background is None else self.database.background
        binding = await self.binding()
        with _conflicts():
            async with pool.transaction(background) as connection:
                transaction = Transaction(self, connection, binding)
                yield transaction
        if transaction.appended:
            self.on_append()

    async def read(self, stream_id: UUID) -> list[Recorded]:
        """Return a stream as `Transaction.read` does, where nothing is written."""
        binding = await self.binding()
        async with self.database.reads.connection() as connection:
            return await Transaction(self, connection, binding).read(stream_id)

    async def fold(self, stream_id: UUID, folding: Folding[S]) -> S:
        """Return a stream's state as `Transaction.fold` does, where nothing is written."""
        keep, kept = partial(self.kept.put, stream_id, folding), self.kept.get(stream_id, folding)
        return (await read_on(await self._source(), stream_id, folding, kept, keep)).state

    async def read_on(
        self,
        stream_id: UUID,
        folding: Folding[S],
        kept: KeptState[S] | None,
        keep: Callable[[KeptState[S]], None],
    ) -> KeptState[S]:
        """Return a stream's state as `fold` does, for a caller that keeps its states itself."""
        return await read_on(await self._source(), stream_id, folding, kept, keep)

    async def _source(self) -> Source:
        return Source(await self.binding(), self.codec, self.database.reads.fetch, self.opened)

    async def read_part(self, streams: Sequence[UUID], part: StreamPart) -> list[Recorded]:
        """Return a part of some streams as `Transaction.read` does, where nothing is written."""
        binding = await self.binding()
        async with self.database.reads.connection() as connection:
            return await Transaction(self, connection, binding).read_part(streams, part)

    async def write(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """Write what commands decided in one round trip; return the outcome of each.

        Each is all or nothing, and none waits for a lock. Raises AppendConflict or PublicIdTaken,
        with nothing written, if another command came in between; LedgerUnavailable as above.
        """
        batch = WriteBatch(self.drafts, self.projectors, (await self.binding()).writing)
        for proposal in proposals:
            batch.propose(proposal)
        sql, arguments = batch.statement()
        with _conflicts():
            row = always(await self.database.writes.fetchrow(sql, *arguments))
        outcomes: list[Outcome] = row["outcomes"]
        if batch.lacks(outcomes, row["append_ids"] or ()):
            raise NotAppended(self.name)
        if "written" in outcomes:
            self.on_append()
        return outcomes

    async def decide_and_write(self, decide: Callable[[], Awaitable[Decided[T]]]) -> T:
        """Write what a command decides on what it reads without a lock; return its result.

        It decides again when another command came first, and tries again while one of its streams
        is locked, up to the deadline. Raises AppendConflict, PublicIdTaken or StreamLocked.
        """
        clock = asyncio.get_running_loop().time
        ends_at, conflicts, locked = clock() + self.database.writes.deadline_seconds, 0, 0
        while True:
            decided = await decide()
            if decided.proposal is None:
                return decided.result
            try:
                (outcome,) = await self.write([decided.proposal])
                if decided.is_settled_by(outcome):
                    return decided.result
                raise StreamLocked(outcome) if outcome == "locked" else AppendConflict(outcome)
            except StreamLocked:
                seconds = locked_seconds(locked)
                if clock() + seconds > ends_at:
                    raise
                locked += 1
                await asyncio.sleep(seconds)
            except (AppendConflict, PublicIdTaken):
                conflicts += 1
                if conflicts == ATTEMPTS_MAX:
                    raise

    async def now(self) -> datetime:
        """Return the time by the database's clock, in whole milliseconds."""
        row = always(await self.database.reads.fetchrow(_SQL.now))
        return to_milliseconds(row["now"])

    async def decode(
        self,
        rows: Iterable[StoredRow],
        *,
        personal: bool = True,
        unread: list[Unread] | None = None,
    ) -> list[Recorded]:
        """Decode stored events as `Transaction.decode` does, for what needs no transaction."""
        return await decode(self.codec, self._data_keys, rows, personal=personal, unread=unread)

    async def _data_keys(self, key_ids: Iterable[UUID]) -> dict[UUID, DataKey]:
        asked = list(key_ids)
        rows = await self.database.background.fetch(_SQL.data_keys, asked) if asked else []
        return self.opened(rows)

    def opened(self, rows: Iterable[Row]) -> dict[UUID, DataKey]:
        """Return stored data keys, unwrapped, by their ids. Raises KeyUnknown."""
        return {row["key_id"]: self.master_keys.open_data_key(*row) for row in rows}

    def drafts(self, append: Append) -> Iterable[tuple[Recorded, bytes]]:
        """Return an append's events as they will be recorded, and as they are stored."""
        cause = append.cause
        meta = Meta(self.clock(), cause.actor, cause.request_id, self.name)
        for version, event in enumerate(append.events, append.expected_version + 1):
            state = self.codec.encode(append.stream_id, version, event, meta, append.key)
            yield Recorded(0, append.stream_id, version, event, meta), state

    async def decide(
        self,
        attempt: Callable[[Transaction], Awaitable[T]],
        *,
        background: float | None = None,
    ) -> T:
        """Run a command in one transaction; decide again when another command came first."""
        for _ in range(ATTEMPTS_MAX - 1):
            with suppress(AppendConflict, PublicIdTaken):
                async with self.transaction(background=background) as transaction:
                    return await attempt(transaction)
        async with self.transaction(background=background) as transaction:
            return await attempt(transaction)


def locked_seconds(tries: int) -> float:
    """Return how long to wait after so many tries for a stream that another command holds."""
    return min(LOCKED_SECONDS * 2**tries, LOCKED_SECONDS_MAX)


@contextmanager
def _conflicts() -> Generator[None]:
    """Convert the violation of a unique constraint to the conflict that it means.

    A migration that came in between is a conflict, too: nothing was written, and the next attempt
    prepares its statements again.
    """
    try:
        yield
    except AlreadyExists as error:
        if error.constraint == "public_ids_pkey":
            raise PublicIdTaken(str(error)) from error
        raise AppendConflict(str(error)) from error
    except SchemaChanged as error:
        raise AppendConflict(str(error)) from error
