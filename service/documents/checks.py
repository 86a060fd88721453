"""From the log to checked documents: a subscriber queues them, a loop looks at their content.

A document's first bytes are compared with the type that was declared for it, and a scanner, where
there is one, gets all of it. What is found is an event in the claim's stream, for people to decide
on; nothing is deleted, and partners' responses do not change. Documents are read by ranges of one
generation, so that what is checked is what was linked, and nothing of one is kept.

Partners take turns, so that one who attaches thousands delays others by a few. Attempts are counted
before anything is read. A document that cannot be checked is tried again with growing waits, and
then set aside, as events are parked: `projections status` shows it, and `projections retry
documents` queues it again.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

import structlog

from service.core.clock import Clock
from service.core.loops import repeated
from service.core.retries import ATTEMPTS_MAX, wait_after
from service.documents.contents import HEAD_BYTES, mismatch
from service.documents.decisions import flag
from service.facts.claims import DocumentsAttached, fold
from service.ledger.database import Row
from service.ledger.events import Cause, Recorded
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.runner import EVENTS_MAX, HANDLE_SECONDS_MAX
from service.ledger.ledger import Ledger, Transaction
from service.ledger.projector import arrays
from service.ledger.sql import queries
from service.ledger.writing import Append
from service.storage.port import ObjectStore

AT_ONCE_MAX: Final = 2
"""Documents checked at a time by one process, each with PART_BYTES in memory."""
PART_BYTES: Final = 1 << 20
CHECK_SECONDS_MAX: Final = 300.0
"""For one document of at most 50 MB, the scanner's time included."""
LEASE_SECONDS: Final = 360.0
"""After this, documents of a process that was cut off are due again."""
CUT_OFF: Final = "cut off at each attempt"
MISSING: Final = "the object is gone"
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


class _Outcome(NamedTuple):
    """What became of an attempt. `fault` is None for a success, `is_final` if no retry can help."""

    check: Row
    fault: str | None = None
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class DocumentChecks:
    """Makes the checks that are due; any number of processes may.

    `queue` parks those of the DocumentCheckQueue that are set aside.
    """

    ledger: Ledger
    queue: ParkingSubscriber
    store: ObjectStore
    scanner: Scanner | None
    clock: Clock

    async def step(self) -> int:
        """Make what is due, for some seconds; return how many were attempted."""
        return await repeated(self._some)

    async def _some(self) -> int:
        """Attempt the next checks; return how many."""
        now, background = self.clock(), self.ledger.database.background
        if not await background.fetchrow(_SQL.checks_due, now):
            return 0
        lease = now + timedelta(seconds=LEASE_SECONDS)
        checks = await background.fetch(_SQL.checks_take, now, AT_ONCE_MAX, lease)
        for outcome in await asyncio.gather(*map(self._attempt, checks)):
            await self._settle(outcome)
        return len(checks)

    async def _attempt(self, check: Row) -> _Outcome:
        """Check a document."""
        if check["attempts"] > ATTEMPTS_MAX:  # the last one was cut off
            return _Outcome(check, CUT_OFF)
        try:
            async with asyncio.timeout(CHECK_SECONDS_MAX):
                await self._check(check)
        except _Gone:
            is_erased = await self.ledger.database.background.fetchrow(
                _SQL.checks_erased, check["document_id"]
            )
            return _Outcome(check, None if is_erased else MISSING, is_final=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
            fault = type(error).__name__
            log.warning(
                "document check failed",
                claim_id=check["claim_id"],
                attempts=check["attempts"],
                error_type=fault,
            )
            return _Outcome(check, fault)
        return _Outcome(check)

    async def _check(self, check: Row) -> None:
        """Record what the first bytes show, and then what the scanner finds."""
        found = mismatch(await self._part(check, 0, HEAD_BYTES), check["mime_type"])
        if found is not None:
            await self._flag(check, "type_mismatch", found)
        if self.scanner is not None:
            name = await self.scanner.scan(self._parts(check))
            if name is not None:
                await self._flag(check, "malware", name)

    async def _parts(self, check: Row) -> AsyncIterator[bytes]:
        """Yield a document's bytes, as many as it had when it was linked."""
        for start in range(0, check["size"], PART_BYTES):
            yield await self._part(check, start, PART_BYTES)

    async def _part(self, check: Row, start: int, size: int) -> bytes:
        size = min(size, check["size"] - start)
        if size <= 0:
            return b""
        part = await self.store.part(check["storage_path"], check["generation"], start, size)
        if part is None:
            raise _Gone
        return part

    async def _flag(self, check: Row, reason: str, detail: str) -> None:
        """Record a finding in the claim's stream, unless it is there."""
        stream = check["stream_id"]
        cause = Cause(ACTOR, f"check-{check['document_id']}")

        async def attempt(transaction: Transaction) -> bool:
            past = await transaction.read(stream)
            events = flag(fold(one.event for one in past), check["document_id"], reason, detail)
            if events:
                await transaction.append(Append(stream, len(past), events, cause))
            return bool(events)

        if await self.ledger.decide(attempt, background=HANDLE_SECONDS_MAX):
            log.warning("document flagged", claim_id=check["claim_id"], code=reason)

    async def _settle(self, outcome: _Outcome) -> None:
        check, fault, is_final = outcome
        background, key = self.ledger.database.background, (check["position"], check["document_id"])
        if fault is None:
            await background.fetch(_SQL.checks_done, *key)
        elif is_final or check["attempts"] >= ATTEMPTS_MAX:
            await self._set_aside(check, fault)
        else:
            later = self.clock() + wait_after(check["attempts"])
            await background.fetch(_SQL.checks_wait, *key, later)

    async def _set_aside(self, check: Row, fault: str) -> None:
        """Park the event that attached a document, with the other checks that it queued."""
        async with self.ledger.transaction(background=HANDLE_SECONDS_MAX) as transaction:
            await self.queue.keep_out(transaction)
            if await transaction.fetch(_SQL.checks_remove, check["position"]):
                await self.queue.park(transaction, [(check["position"], check["stream_id"], fault)])
