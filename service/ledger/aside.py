"""Events of this service that were set aside, as it wrote them.

They are kept as they were (decision 45): they can be taken back, hold personal data as those of the
log do, and are opened as long as their keys are there.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

from service.ledger.database import Row
from service.ledger.decoding import StoredEvent
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

Fetch = Callable[..., Awaitable[Sequence[Row]]]

PAGE: Final = 500

_SQL = queries("service.ledger")


async def set_aside(
    ledger: Ledger, said: str = "", stream: UUID | None = None, fetch: Fetch | None = None
) -> AsyncIterator[tuple[int, StoredEvent]]:
    """Yield the events that were set aside, with their ids there, oldest first.

    Only those whose state has `said` somewhere, of this `stream`, and that a key of this service
    has bound, even if it was retired since: nobody else could encrypt anything. `fetch` is that of
    a transaction.
    """
    read, keys, last = fetch or ledger.database.background.fetch, await ledger.event_keys(), 0
    while rows := await read(_SQL.set_aside, last, PAGE, said.encode(), stream):
        for number, append_id, one, version, topic, digest, mac in rows:
            if keys.holds(digest, mac):
                (kept,) = await read(_SQL.set_aside_state, number)
                yield number, StoredEvent(0, append_id, one, version, topic, kept["state"])
        last = rows[-1]["id"]
