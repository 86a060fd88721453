"""Finding data keys that are missing although their subject was not erased: data loss."""

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
"""Keys that are listed. Events of further keys are only counted, so memory stays bounded."""
_NAMES: Final = ("claim_id", "link_id", "entity_id", "partner_id")
"""Fields that identify the subject of an event, the most specific first."""

_SQL = queries("service.privacy")


class Lost(NamedTuple):
    """A lost key, and the first event that cannot be opened without it."""

    data_key: UUID
    subject: str | None
    topic: str
    position: int | None


class LostKeysFound(NamedTuple):
    """`events` counts events encrypted under lost keys; `keys` lists at most NAMED_MAX keys."""

    events: int
    keys: list[Lost]


class LostKeys:
    """Looks for the lost keys of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """Read through the ledger's own pool."""
        self._ledger = ledger

    async def size(self) -> int:
        """Return about how many events there are to check."""
        row = await self._ledger.database.fetchrow(_SQL.find_size)
        return row["size"] if row is not None else 0

    async def find(self, advance: Callable[[int], object]) -> LostKeysFound:
        """Check every event, reporting progress to `advance`. No key is unwrapped."""
        events, last = 0, 0
        keys: dict[UUID, Lost] = {}
        while True:
            async with self._ledger.transaction(SECONDS_MAX) as transaction:
                rows = await transaction.fetch(_SQL.find_events, last, PAGE)
                if not rows:
                    return LostKeysFound(events, list(keys.values()))
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
    except Unreadable:  # `audit verify` reports it
        return None
    return None if sealed is None else sealed.key


def _subject(row: Row) -> str | None:
    data = msgspec.json.decode(stored_form(row["state"]).data)
    return next((data[name] for name in _NAMES if data.get(name)), None)
