"""What leaves the service with somebody's data, and the erasures that wait for it.

Whatever sends such data shares a lock of whose data it is until it is sent, and reads the data
under it. An erasure takes the lock alone, before any other: it waits for what is on its way, and
what is begun later finds nothing to send.
"""

from collections.abc import Collection
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import lock_number

_SQL = queries("service.ledger")


class BeingErased(Exception):
    """An erasure is at whose data it is; in a moment, the data will be gone."""


async def hold(transaction: Transaction, streams: Collection[UUID]) -> set[UUID]:
    """Share the locks of some until the transaction ends; return whose are not being erased.

    Named by the streams that their data keys belong to. It waits for nothing: an erasure that waits
    for others would have to wait for what comes after it, too.
    """
    locks = {effect_lock(stream): stream for stream in streams}
    rows = await transaction.fetch(_SQL.lock_shared_try, sorted(locks))
    return {locks[row["key"]] for row in rows}


async def hold_one(transaction: Transaction, stream: UUID) -> None:
    """Share one's lock until the transaction ends; raises BeingErased."""
    if not await hold(transaction, [stream]):
        raise BeingErased


def effect_lock(stream: UUID) -> int:
    """Return the number of the lock of whose data it is."""
    return lock_number(stream_id("effects", str(stream)))
