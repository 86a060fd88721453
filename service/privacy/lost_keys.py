"""Finding data keys that are gone although nobody erased their subject: that is data loss."""

from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from service.ledger.codec import stored_form
from service.ledger.database import Row
from service.ledger.events import Unreadable
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

PAGE: Final = 1000
SECONDS_MAX: Final = 60.0
"""For one page of events."""
NAMED_MAX: Final = 1000
"""Keys that are named. Beyond these their events are only counted, so memory stays bounded."""
_NAMES: Final = ("claim_id", "link_id", "entity_id", "partner_id")
"""Fields that name whose an event is, the closest first."""

_SQL = queries("service.privacy")


class Lost(NamedTuple):
    """A lost key, and the first event that cannot be opened without it."""

    data_key: UUID
    subject: str | None
    topic: str
    position: int | None


class LostKey(NamedTuple):
    """`events` counts all that are sealed by lost keys; `keys` names at most NAMED_MAX of these."""

    events: int
    keys: list[Lost]


class LostKeys:
    """Looks for the lost keys of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """Read through the ledger's own pool."""
        self._ledger = ledger

    async def size(self) -> int:
        """Return about how many events there are to look at."""
        row = await self._ledger.database.fetchrow(_SQL.find_size)
        return row["size"] if row is not None else 0

    async def find(self, advance: Callable[[int], object]) -> LostKey:
        """Look at every event; `advance` hears how far in the log it is. No key is unwrapped."""
        events, last = 0, 0
        keys: dict[UUID, Lost] = {}
        while True:
            async with self._ledger.transaction(SECONDS_MAX) as transaction:
                rows = await transaction.fetch(_SQL.find_events, last, PAGE)
                if not rows:
                    return LostKey(events, list(keys.values()))
                sealed = [(key, row) for row in rows if (key := _key_of(row)) is not None]
                asked = list({key for key, _ in sealed})
                lost = {row["key_id"] for row in await transaction.fetch(_SQL.keys_lost, asked)}
            for key, row in sealed:
                if key in lost:
                    events += 1
                    if key not in keys and len(keys) < NAMED_MAX:
                        keys[key] = Lost(key, _subject(row), row["topic"], row["position"])
            advance(rows[-1]["append_id"] - last)
            last = rows[-1]["append_id"]


def _key_of(row: Row) -> UUID | None:
    try:
        sealed = stored_form(row["state"]).sealed
    except Unreadable:  # `audit verify` tells of it
        return None
    return None if sealed is None else sealed.key


def _subject(row: Row) -> str | None:
    data = msgspec.json.decode(stored_form(row["state"]).data)
    return next((data[name] for name in _NAMES if data.get(name)), None)
