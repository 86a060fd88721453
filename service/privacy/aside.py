"""Events of this service that were set aside: they hold personal data as those of the log do.

They are kept as they were (decision 45), so that they are opened as long as their keys are there.
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

_SQL = queries("service.privacy")


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


async def begun_aside(
    ledger: Ledger, stream: UUID, fetch: Fetch | None = None
) -> StoredEvent | None:
    """Return the event with which a stream began, if it was set aside and none came since."""
    if await (fetch or ledger.database.background.fetch)(_SQL.facts, stream):
        return None
    aside = set_aside(ledger, stream=stream, fetch=fetch)
    begun = [event async for _, event in aside if event.version == 1]
    return begun[-1] if begun else None
