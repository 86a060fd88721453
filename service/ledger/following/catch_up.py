"""Read models that follow the numbered log: one bad event puts its stream aside, not the rest.

An event that cannot be decoded or applied is parked, and with it what follows in its stream, in
order; all other streams go on. Faults that are nobody's event (PostgreSQL is away, a key or a table
is missing) park nothing: the follower waits and tries again.
"""

from collections.abc import Sequence
from uuid import UUID

import structlog

from service.core.clock import Clock
from service.ledger.database import is_infrastructure_error, transaction_on
from service.ledger.encryption import DecryptionFailed, KeyUnknown
from service.ledger.events import Unreadable
from service.ledger.following.parking import FOLLOWS, Parking
from service.ledger.following.runner import EVENTS_MAX, HANDLE_SECONDS_MAX, StoredEvent
from service.ledger.ledger import Ledger, Transaction
from service.ledger.projector import Projector

log = structlog.get_logger()


class CatchUpProjection:
    """Subscriber that applies a projector's writes. Its checkpoint has the projector's name."""

    events_max = EVENTS_MAX

    def __init__(self, projector: Projector, clock: Clock) -> None:
        """`clock` tells when a stream was parked."""
        self.projector = projector
        self.name = projector.name
        self.topics = projector.topics
        self._parking = Parking(projector.name, clock)

    async def handle_stored(self, transaction: Transaction, events: Sequence[StoredEvent]) -> None:
        """Apply events; park those that cannot be, and what follows them in their streams."""
        waiting = await self._parking.streams(transaction, {one.stream_id for one in events})
        faults = await self._apply(transaction, events, waiting)
        await self._parking.park(transaction, faults)
        self._tell(transaction, faults)

    async def retry(self, ledger: Ledger, position: int | None = None) -> int:
        """Take parked streams up again, all or that of one position; answer the events applied.

        A stream goes on until it is done or an event of it fails again. Until then, the follower
        keeps parking what is new in it.

        Raises:
            RetryRefused: a read model of the ledger is being rebuilt. What was done stays done.

        """
        async with ledger.transaction() as transaction:
            streams = await self._parking.queue(transaction, position)
        return sum([await self._retry_stream(ledger, stream) for stream in streams])

    async def _retry_stream(self, ledger: Ledger, stream_id: UUID) -> int:
        applied = 0
        while True:
            # The checkpoint's lock keeps the follower out: it could park another event meanwhile.
            async with ledger.transaction(HANDLE_SECONDS_MAX) as transaction:
                await self._parking.hold(transaction)
                events = await self._parking.events(transaction, stream_id, EVENTS_MAX)
                if not events:
                    return applied
                faults = await self._apply(transaction, events, set())
                await self._parking.unpark(transaction, events)
                failed = {one.position for one, _ in faults}
                applied_now = [one for one in events if one.position not in failed]
                await self._parking.park(transaction, faults)
            self._tell(transaction, faults)
            applied += len(applied_now)
            if faults:
                return applied

    async def _apply(
        self, transaction: Transaction, events: Sequence[StoredEvent], waiting: set[UUID]
    ) -> list[tuple[StoredEvent, str]]:
        """Apply what does not follow a parked event; answer the others, each with its fault."""
        free = [one for one in events if one.stream_id not in waiting]
        at_once = not free or await self._fault(transaction, free) is None
        faults: list[tuple[StoredEvent, str]] = []
        for one in events:
            fault = FOLLOWS
            if one.stream_id not in waiting:
                fault = None if at_once else await self._fault(transaction, [one])
            if fault is not None:
                waiting.add(one.stream_id)
                faults.append((one, fault))
        return faults

    async def _fault(self, transaction: Transaction, events: Sequence[StoredEvent]) -> str | None:
        """Apply events, all or none; answer what is wrong with them, None where nothing is."""
        try:
            async with transaction_on(transaction.connection):  # a savepoint
                recorded = await transaction.decode_numbered(
                    events, personal=self.projector.reads_personal
                )
                await transaction.write(
                    write for one in recorded for write in self.projector.project(one)
                )
        except Exception as error:
            if _is_nobodys(error):
                raise
            return _described(error)
        return None

    def _tell(self, transaction: Transaction, faults: Sequence[tuple[StoredEvent, str]]) -> None:
        for one, fault in faults:
            if fault != FOLLOWS:
                log.error(
                    "event parked",
                    projection=self.name,
                    ledger=transaction.ledger_name,
                    position=one.position,
                    error_type=fault.partition(":")[0],
                )


def _is_nobodys(error: Exception) -> bool:
    """Tell faults of the installation: no event is to blame, and each would fail alike."""
    if isinstance(error, KeyUnknown):
        return not isinstance(error, DecryptionFailed)
    return is_infrastructure_error(error)


def _described(error: Exception) -> str:
    """Return a fault for operators: others' messages quote values, which may be personal."""
    name = type(error).__name__
    if isinstance(error, Unreadable):
        return f"{name}: {error.fault}"
    return f"{name}: {error}" if isinstance(error, DecryptionFailed) else name
