"""Whose data was erased, as this service recorded it (decision 8).

Whoever has a ledger's login can insert an event that says so, and it waits for a number as long as
they hold the head. It must not hide that a data key is missing, or that one is still there.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

from service.ledger.binding import Binding
from service.ledger.database import Row
from service.ledger.sql import queries

_AT_ONCE: Final = 500
"""Streams whose events are read at a time."""
_BYTES_MAX: Final = 64 << 10
"""Far more than an event has by which a link was redeemed, or a subject erased."""
_ERASURE: Final = "PersonalDataErased"

_SQL = queries("service.ledger")


async def erased(
    fetch: Callable[..., Awaitable[Sequence[Row]]], binding: Binding, key_ids: Iterable[UUID]
) -> set[UUID]:
    """Return those of some data keys whose subjects were erased, by events of this service.

    Read this after what is stored of the keys: an erasure that commits in between is then there.
    """
    asked, found = list(key_ids), set[UUID]()
    for start in range(0, len(asked), _AT_ONCE):
        rows = await told(fetch, asked[start : start + _AT_ONCE], _ERASURE)
        placed = await binding.placing(fetch, ((row["append_id"], row["mac"]) for row in rows))
        found.update(row["originator_id"] for row in placed.ours(rows))
    return found


async def told(
    fetch: Callable[..., Awaitable[Sequence[Row]]],
    streams: Sequence[UUID],
    topic: str,
    bytes_max: int = _BYTES_MAX,
) -> Sequence[Row]:
    """Return the few events of one topic in some streams, whoever wrote them."""
    return await fetch(_SQL.told, streams, topic, bytes_max)
