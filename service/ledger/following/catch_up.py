"""Subscribers that park: one bad event blocks its stream, not the rest of the log.

An event that cannot be decoded or handled is parked, together with all later events of its stream,
in order; all other streams continue. Infrastructure errors, which no event causes, park nothing
(PostgreSQL is down, a key or a table is missing): the follower waits and tries again.
"""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import structlog

from service.core.clock import Clock
from service.ledger.database import LedgerUnavailable, is_infrastructure_error, transaction_on
from service.ledger.decoding import PAGE_BYTES_MAX, StoredEvent, described
from service.ledger.encryption import DecryptionFailed, KeyUnknown
from service.ledger.events import Event, Recorded, Unreadable
from service.ledger.following.parking import FOLLOWS, NOT_OURS, PARKED, RetryRefused
from service.ledger.following.runner import EVENTS_MAX, HANDLE_SECONDS_MAX, Follows
from service.ledger.ledger import Ledger
from service.ledger.projector import Insert, Projector
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

_SQL = queries("service.ledger.following")

log = structlog.get_logger()


class Handler(Follows, Protocol):
    """Handles events, and can work without an event until that event is retried.

    Effects outside the transaction are repeated after a rollback, so they have to be idempotent. An
    event of a topic that this release does not know is parked.
    """

    @property
    def reads_personal(self) -> bool:
        """Whether it needs sealed fields: only then are keys asked for."""
        ...

    async def handle(self, transaction: Transaction, events: Sequence[Recorded], /) -> None:
        """Write what follows from the events, in their order."""
        ...


class ParkingSubscriber:
    """Subscriber that hands events to a handler and parks those that fail."""

    def __init__(self, handler: Handler, clock: Clock) -> None:
        """`clock` dates the events that are parked."""
        self._handler = handler
        self._clock = clock
        self.name = handler.name
        self.topics: Sequence[type[Event]] = tuple(handler.topics)
        self.events_max = handler.events_max
        self.takes_unknown = handler.takes_unknown

    async def handle_stored(self, transaction: Transaction, events: Sequence[StoredEvent]) -> None:
        """Handle events; park those that fail, and what follows them in their streams."""
        streams = {event.stream_id for event in events}
        parked = await transaction.fetch(_SQL.parked_streams, self.name, list(streams))
        faults = await self._handle(transaction, events, {row["stream_id"] for row in parked})
        await self.park(transaction, faults)

    async def retry(self, ledger: Ledger, position: int | None = None) -> int:
        """Retry parked streams, all or that of one position; return the number of events handled.

        A stream is retried until it is done or an event of it fails again. Until then, the follower
        keeps parking its new events.

        Raises RetryRefused if a read model of the ledger is being rebuilt; events handled so far
        stay handled.
        """
        async with ledger.transaction(background=HANDLE_SECONDS_MAX) as transaction:
            streams = await transaction.fetch(_SQL.parked_queue, self.name, position)
        return sum([await self._retry_stream(ledger, row["stream_id"]) for row in streams])

    async def _retry_stream(self, ledger: Ledger, stream_id: UUID) -> int:
        handled = 0
        while True:
            # The checkpoint's lock keeps the follower out: it could park another event meanwhile.
            async with ledger.transaction(background=HANDLE_SECONDS_MAX) as transaction:
                await self._hold(transaction)
                rows = await transaction.fetch(
                    _SQL.parked_events, self.name, stream_id, EVENTS_MAX, PAGE_BYTES_MAX
                )
                if not rows:
                    return handled
                events = [StoredEvent(*row) for row in rows]
                faults = await self._handle(transaction, events, set())
                positions = [event.position for event in events]
                await transaction.fetch(_SQL.unpark, self.name, positions)
                await self.park(transaction, faults)
            handled += len(events) - len(faults)
            if faults:
                return handled

    async def _hold(self, transaction: Transaction) -> None:
        """Keep the follower and rebuilds out until the transaction ends; raises RetryRefused.

        A rebuild leaves out what is parked: retried meanwhile, it would be missing afterwards.
        """
        row = await transaction.fetchrow(_SQL.retry_hold, transaction.ledger_name)
        if row is None or not row["is_free"]:
            raise RetryRefused(f"read models of {transaction.ledger_name} are being rebuilt")
        await self.keep_out(transaction)

    async def keep_out(self, transaction: Transaction) -> None:
        """Wait until the follower is out, and keep it out until the transaction ends."""
        await transaction.fetch(_SQL.subscription_wait, self.name)

    async def park(self, transaction: Transaction, faults: Sequence[tuple[int, UUID, str]]) -> None:
        """Park events, each by its position, stream and fault; the follower has to be out."""
        at = self._clock()
        await transaction.write(
            Insert(PARKED, (self.name, position, stream_id, fault, at))
            for position, stream_id, fault in faults
        )
        for position, _, fault in faults:
            if fault != FOLLOWS:
                log.error(
                    "event parked",
                    projection=self.name,
                    ledger=transaction.ledger_name,
                    position=position,
                    error_type=fault.partition(":")[0],
                )

    async def _handle(
        self, transaction: Transaction, events: Sequence[StoredEvent], waiting: set[UUID]
    ) -> list[tuple[int, UUID, str]]:
        """Handle what does not follow a parked event; return the others, each with its fault."""
        free = [event for event in events if event.stream_id not in waiting]
        at_once = not free or await self._fault(transaction, free) is None
        faults: list[tuple[int, UUID, str]] = []
        for event in events:
            fault = FOLLOWS
            if event.stream_id not in waiting:
                fault = None if at_once else await self._fault(transaction, [event])
            if fault is not None:
                waiting.add(event.stream_id)
                faults.append((event.position, event.stream_id, fault))
        return faults

    async def _fault(self, transaction: Transaction, events: Sequence[StoredEvent]) -> str | None:
        """Handle events, all or none; return what is wrong with them, None where nothing is."""
        if not transaction.are_ours(events):
            if await transaction.has_other_keys():  # a process that stood still, or could not read
                raise LedgerUnavailable("the event keys have changed")
            return NOT_OURS  # somebody put it into the log
        try:
            async with transaction_on(transaction.connection):  # a savepoint
                personal = self._handler.reads_personal
                recorded = await transaction.decode(events, personal=personal)
                await self._handler.handle(transaction, recorded)
        except (DecryptionFailed, Unreadable) as error:
            return described(error)
        except Exception as error:  # whatever a handler raises parks these events alone
            if isinstance(error, KeyUnknown) or is_infrastructure_error(error):
                raise
            return type(error).__name__  # its message may quote values, which may be personal
        return None


class CatchUpProjection(ParkingSubscriber):
    """Subscriber that writes a projector's rows. Its checkpoint has the projector's name."""

    def __init__(self, projector: Projector, clock: Clock) -> None:
        """`clock` dates the events that are parked."""
        super().__init__(_Rows(projector), clock)
        self.projector = projector


class _Rows:
    events_max = EVENTS_MAX
    takes_unknown = True

    def __init__(self, projector: Projector) -> None:
        self._projector = projector
        self.name = projector.name
        self.topics = projector.topics

    @property
    def reads_personal(self) -> bool:
        return self._projector.reads_personal

    async def handle(self, transaction: Transaction, events: Sequence[Recorded]) -> None:
        await transaction.write(
            write for recorded in events for write in self._projector.project(recorded)
        )
