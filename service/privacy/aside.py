"""A subject whose first event was set aside."""

from uuid import UUID

from service.ledger.aside import Fetch, set_aside
from service.ledger.decoding import StoredEvent
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

_SQL = queries("service.privacy")


async def begun_aside(
    ledger: Ledger, stream: UUID, fetch: Fetch | None = None
) -> StoredEvent | None:
    """Return the event with which a stream began, if it was set aside and none came since."""
    if await (fetch or ledger.database.background.fetch)(_SQL.facts, stream):
        return None
    aside = set_aside(ledger, stream=stream, fetch=fetch)
    begun = [event async for _, event in aside if event.version == 1]
    return begun[-1] if begun else None
