"""Our ledger in the shape of the `eventsourcing` library's recorders, so that its cases run on it.

It adds nothing of its own: appends are `append.sql` in a ledger's transaction, numbering is the
Sequencer's, reading is `stream.sql` and a statement over the log. The library is synchronous, so
everything runs in an event loop in a thread.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from threading import Thread
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    StoredEvent,
)

from service.app.bootstrap import Service
from service.app.settings import Settings
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer
from service.ledger.sql import Sql, queries
from service.ledger.transaction import AppendConflict
from tests.ledger.raw_events import RawEvent, write_raw
from tests.world import PATIENCE_SECONDS

T = TypeVar("T")

FIRST_VERSION = 1
"""Streams of ours begin at version 1, and have no gap; the library's cases begin at 0 or at 1."""
POSITIONS = "select position from ledger.log where append_id = any($1::bigint[]) order by 1"
EVENTS = Sql(
    "events",
    "A range of the log; with topics, only theirs.",
    """
    select l.position, e.originator_id, e.originator_version, e.topic, e.state
    from ledger.log as l join ledger.events as e using (append_id)
    where l.position > $1 and l.position <= $2 and ($3::text[] is null or e.topic = any($3))
    order by l.position
    """,
)

_STREAM = queries("service.ledger").stream
_SIZE = queries("service.evidence.replay").size


class LoopThread:
    """A service of accounts in an event loop of its own, for callers that have none."""

    def __init__(self, settings: Settings) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self._service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
        self._opened = self._service.opened()
        self.run(self._opened.__aenter__())
        self.ledger: Ledger = self._service.accounts

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Close the service and end the thread."""
        self.run(self._opened.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class LedgerAggregateRecorder(AggregateRecorder):
    """Streams: append and read."""

    def __init__(self, thread: LoopThread) -> None:
        self.thread = thread
        self.ledger = thread.ledger
        self._firsts: dict[UUID | str, int] = {}  # the version that a case began each stream at

    def _raw(self, event: StoredEvent) -> RawEvent:
        stream = event.originator_id
        assert isinstance(stream, UUID)
        first = self._firsts.setdefault(stream, event.originator_version)
        version = event.originator_version - first + FIRST_VERSION
        return RawEvent(stream, version, event.topic, event.state)

    def _version(self, stream: UUID | str, stored: int) -> int:
        return stored + self._firsts.get(stream, FIRST_VERSION) - FIRST_VERSION

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int] | None:
        """Append, all or nothing; raises IntegrityError where a version is there already."""
        self.thread.run(self._append(stored_events))
        return None

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Read a stream. Ours is read whole, always: what was not asked for is left out here."""
        rows = self.thread.run(self.ledger.database.reads.fetch(_STREAM, originator_id))
        found = [
            StoredEvent(originator_id, self._version(originator_id, version), topic, state)
            for _, version, topic, state, _ in map(tuple, rows)
        ]
        asked = [
            one
            for one in found
            if (gt is None or one.originator_version > gt)
            and (lte is None or one.originator_version <= lte)
        ]
        return (asked[::-1] if desc else asked)[:limit]

    async def _append(self, stored_events: Sequence[StoredEvent]) -> list[int]:
        try:
            return await write_raw(self.ledger, *map(self._raw, stored_events))
        except AppendConflict as error:
            raise IntegrityError(str(error)) from error


class LedgerApplicationRecorder(LedgerAggregateRecorder, ApplicationRecorder):
    """The log: numbered after each append, read by position."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int] | None:
        """Append and number; answer the positions."""
        return self.thread.run(self._append_and_number(stored_events))

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Read the log."""
        after = (start or 0) - (1 if start and inclusive_of_start else 0)
        end = min(stop or 2**62, self.max_notification_id() or 0)
        end = end if topics else min(end, after + limit)
        asked = self.ledger.database.reads.fetch(EVENTS, after, end, list(topics) or None)
        return [
            Notification(stream, self._version(stream, version), topic, state, id=position)
            for position, stream, version, topic, state in map(tuple, self.thread.run(asked))
        ][:limit]

    def max_notification_id(self) -> int | None:
        """Return the log's size."""
        row = self.thread.run(self.ledger.database.reads.fetchrow(_SIZE))
        return row["size"] or None

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> "LedgerSubscription":
        """Follow the log from a position on."""
        return LedgerSubscription(self, gt, topics)

    async def _append_and_number(self, stored_events: Sequence[StoredEvent]) -> list[int]:
        append_ids = await self._append(stored_events)
        sequencer = Sequencer(self.ledger)
        positions: list[int] = []
        while len(positions) < len(append_ids):
            await sequencer.step()  # another may be the holder, and number these too
            async with self.ledger.database.writes.connection() as connection:
                statement = POSITIONS.replace("ledger.", f"{self.ledger.name}.")
                rows = await connection.fetch(statement, append_ids)
            positions = [row["position"] for row in rows]
        return positions


class LedgerSubscription(ListenNotifySubscription[LedgerApplicationRecorder]):
    """Woken by the NOTIFY that the sequencer sends once a batch."""

    def __init__(
        self, recorder: LedgerApplicationRecorder, gt: int | None, topics: Sequence[str]
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._listening = recorder.thread.run(self._listen())

    async def _listen(self) -> asyncpg.Connection:
        connection = await asyncpg.connect(self._recorder.ledger.database.url)
        await connection.add_listener("stored_events", lambda *_: self._has_been_notified.set())
        self._has_been_notified.set()
        return connection

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        try:
            super().__exit__(*args, **kwargs)
        finally:
            self._recorder.thread.run(self._listening.close())
