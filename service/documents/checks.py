"""From the log to checked documents: a subscriber queues them, a loop looks at their content.

A document's first bytes are compared with the type that was declared for it, and a scanner, where
there is one, gets all of it. What is found is an event in the claim's stream, for people to decide
on; nothing is deleted, and partners' responses do not change. Documents are read by ranges of one
generation, so that what is checked is what was linked, and nothing of one is kept.

A row of the queue says which document of which event is due, and no more: what is checked, and in
which stream a finding is recorded, is read from that event. A row without one is dropped.

Partners take turns, so that one who attaches thousands delays others by a few. Attempts are counted
before anything is read. A document that cannot be checked is tried again with growing waits, and
then set aside, as events are parked: `projections status` shows it, and `projections retry
documents` queues it again.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import structlog

from service.documents.contents import HEAD_BYTES, mismatch
from service.documents.decisions import flag
from service.facts.claims import Document, DocumentFlagged, DocumentsAttached, fold
from service.ledger.decoding import StoredEvent, Unread
from service.ledger.erased import erased
from service.ledger.events import Cause, Recorded
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.runner import EVENTS_MAX, HANDLE_SECONDS_MAX
from service.ledger.ledger import Ledger
from service.ledger.projector import arrays
from service.ledger.queue_runner import Hopeless, NotBefore
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import Append
from service.storage.port import ObjectStore

AT_ONCE_MAX: Final = 2
"""Documents checked at a time by one process, each with PART_BYTES in memory."""
PART_BYTES: Final = 1 << 20
CHECK_SECONDS_MAX: Final = 300.0
"""For one document of at most 50 MB, the scanner's time included."""
LEASE_SECONDS: Final = 360.0
"""After this, documents of a process that was cut off are due again."""
MISSING: Final = "the object is gone"
CUT_SHORT: Final = "storage returned less than was linked"
ACTOR: Final = "system:documents"

_SQL = queries("service.documents")

log = structlog.get_logger()


class Scanner(Protocol):
    """Finds malicious content; there may be none."""

    async def scan(self, chunks: AsyncIterator[bytes], /) -> str | None:
        """Return the name of what was found, None for nothing; raise without a verdict."""
        ...


class DocumentCheckQueue:
    """Subscriber of a partner ledger: queues the documents of each claim."""

    name = "documents"
    events_max = EVENTS_MAX
    topics = (DocumentsAttached,)
    reads_personal = False
    takes_unknown = False

    async def handle(self, transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Queue what to check, in the transaction that advances the checkpoint."""
        notes = [
            (one.position, one.stream_id, one.meta.at, _partner(one), one.event.claim_id,
             document.document_id, document.storage_path, document.mime_type, document.size,
             document.generation)
            for one in events
            if isinstance(one.event, DocumentsAttached)
            for document in one.event.documents
        ]  # fmt: skip
        if notes:
            await transaction.fetch(_SQL.checks_note, *arrays(notes))


def _partner(attached: Recorded) -> str:
    """Return whose documents an event attached, for taking turns; whatever keys they use."""
    return attached.meta.actor.partition("/")[0].removeprefix("partner:")


class _Gone(Exception):
    """The object that was linked is not in the bucket any more."""


class QueuedCheck(NamedTuple):
    """A document to check: its row, and the event that attached it.

    `stored` is None where no event of this service has that position. What cannot be read, such as
    an event of a later release, has its `fault`.
    """

    position: int
    document_id: str
    attempts: int
    stored: StoredEvent | None = None
    attached: DocumentsAttached | None = None
    fault: str | None = None

    @property
    def document(self) -> Document | None:
        """The document, as it was attached."""
        documents = () if self.attached is None else self.attached.documents
        return next((one for one in documents if one.document_id == self.document_id), None)


@dataclass(frozen=True, slots=True)
class DocumentChecks:
    """The queue of checks, and how one is made.

    `queue` parks those of the DocumentCheckQueue that are set aside.
    """

    ledger: Ledger
    queue: ParkingSubscriber
    store: ObjectStore
    scanner: Scanner | None

    lease_seconds = LEASE_SECONDS

    @property
    def seconds_max(self) -> float:
        """How long one document may take."""
        return CHECK_SECONDS_MAX

    async def take(self, now: datetime, until: datetime) -> Sequence[QueuedCheck]:
        """Take the next checks, of the partner whose turn it is."""
        background = self.ledger.database.background
        if not await background.fetchrow(_SQL.checks_due, now):
            return []
        turn = await background.fetchrow(_SQL.checks_turn, now)
        if turn is None:
            return []
        rows = await background.fetch(_SQL.checks_take, now, AT_ONCE_MAX, until, *turn)
        taken = [QueuedCheck(*row) for row in rows]
        found = await background.fetch(_SQL.checks_attached, [one.position for one in taken])
        ours = {row["position"]: StoredEvent(*row) for row in await self.ledger.ours(found)}
        unread = list[Unread]()
        read = await self.ledger.decode(ours.values(), personal=False, unread=unread)
        attached = {
            one.position: one.event for one in read if isinstance(one.event, DocumentsAttached)
        }
        faults = {one.position: one.fault for one in unread}
        return [
            one._replace(
                stored=ours.get(one.position),
                attached=attached.get(one.position),
                fault=faults.get(one.position),
            )
            for one in taken
        ]

    def held(
        self, items: Sequence[QueuedCheck]
    ) -> AbstractAsyncContextManager[Sequence[QueuedCheck]]:
        """Hold nothing."""
        return nullcontext(items)

    async def attempt(self, item: QueuedCheck) -> None:
        """Check a document; one of a claim that was erased needs no check."""
        if item.fault is not None:
            raise Hopeless(item.fault)
        document = item.document
        if item.stored is None or document is None:  # of a log that was cut, or of nobody's
            log.warning("document check dropped", position=item.position)
            return
        stream = item.stored.stream_id
        try:
            await self._check(stream, document)
        except _Gone as error:
            background, binding = self.ledger.database.background, await self.ledger.binding()
            if not await erased(background.fetch, binding, [stream]):
                raise Hopeless(MISSING) from error

    async def _check(self, stream: UUID, document: Document) -> None:
        """Record what the first bytes show, and then what the scanner finds."""
        found = mismatch(await self._part(document, 0, HEAD_BYTES), document.mime_type)
        if found is not None:
            await self._flag(stream, document, "type_mismatch", found)
        if self.scanner is not None:
            name = await self.scanner.scan(self._parts(document))
            if name is not None:
                await self._flag(stream, document, "malware", name)

    async def _parts(self, document: Document) -> AsyncIterator[bytes]:
        """Yield a document's bytes, as many as it had when it was linked."""
        for start in range(0, document.size, PART_BYTES):
            yield await self._part(document, start, PART_BYTES)

    async def _part(self, document: Document, start: int, size: int) -> bytes:
        size = min(size, document.size - start)
        if size <= 0:
            return b""
        part = await self.store.part(document.storage_path, document.generation, start, size)
        if part is None:
            raise _Gone
        if len(part) != size:  # the rest would count as looked at
            raise NotBefore(CUT_SHORT, 0)
        return part

    async def _flag(self, stream: UUID, document: Document, reason: str, detail: str) -> None:
        """Record a finding in the claim's stream, unless it is there."""
        cause = Cause(ACTOR, f"check-{document.document_id}")

        async def attempt(transaction: Transaction) -> Sequence[DocumentFlagged]:
            past = await transaction.read(stream)
            claim = fold(one.event for one in past)
            events = flag(claim, document.document_id, reason, detail)
            if events:
                await transaction.append(Append(stream, len(past), events, cause))
            return events

        for event in await self.ledger.decide(attempt, background=HANDLE_SECONDS_MAX):
            log.warning("document flagged", claim_id=event.claim_id, code=reason)

    def log_failure(self, item: QueuedCheck, error_type: str) -> None:
        """Log an attempt that failed."""
        log.warning(
            "document check failed",
            claim_id=item.attached and item.attached.claim_id,
            attempts=item.attempts,
            error_type=error_type,
        )

    async def done(self, items: Sequence[QueuedCheck]) -> None:
        """Remove what was checked."""
        for item in items:
            await self.ledger.database.background.fetch(_SQL.checks_done, *item[:2])

    async def wait(self, item: QueuedCheck, later: datetime, _fault: str) -> None:
        """Make it due again later."""
        await self.ledger.database.background.fetch(_SQL.checks_wait, *item[:2], later)

    async def set_aside(self, item: QueuedCheck, fault: str) -> None:
        """Park the event that attached a document, with the other checks that it queued."""
        stored = item.stored
        async with self.ledger.transaction(background=HANDLE_SECONDS_MAX) as transaction:
            await self.queue.keep_out(transaction)
            if await transaction.fetch(_SQL.checks_remove, item.position) and stored is not None:
                await self.queue.park(transaction, [(item.position, stored.stream_id, fault)])
