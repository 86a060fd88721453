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

_BYTES_MAX: Final = 64 << 10
"""Far more than an event has by which a subject was erased."""

_SQL = queries("service.ledger")


async def erased(
    fetch: Callable[..., Awaitable[Sequence[Row]]], binding: Binding, key_ids: Iterable[UUID]
) -> set[UUID]:
    """Return those of some data keys whose subjects were erased, by events of this service.

    Read this after what is stored of the keys: an erasure that commits in between is then there.
    """
    asked = list(key_ids)
    rows = await fetch(_SQL.erasures, asked, _BYTES_MAX) if asked else []
    placed = await binding.placing(fetch, ((row["append_id"], row["mac"]) for row in rows))
    return {row["originator_id"] for row in placed.ours(rows)}
