"""Finding data keys that are missing although their subject was not erased: data loss."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from service.ledger.codec import stored_form
from service.ledger.database import Row
from service.ledger.events import Unreadable
from service.ledger.ledger import Ledger, Transaction
from service.ledger.sql import queries
from service.privacy.log_pages import Advance, each_page

PAGE: Final = 1000
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


async def find_lost_keys(ledger: Ledger, advance: Advance) -> LostKeysFound:
    """Check every event of a ledger, reporting progress to `advance`. No key is unwrapped."""
    events = 0
    keys: dict[UUID, Lost] = {}
    async for lost in each_page(ledger, PAGE, advance, _lost_in):
        events += len(lost)
        for key, row in lost:
            if key not in keys and len(keys) < NAMED_MAX:
                keys[key] = Lost(key, _subject(row), row["topic"], row["position"])
    return LostKeysFound(events, list(keys.values()))


async def _lost_in(transaction: Transaction, rows: Sequence[Row]) -> list[tuple[UUID, Row]]:
    sealed = [(key, row) for row in rows if (key := _key_of(row)) is not None]
    asked = list({key for key, _ in sealed})
    lost = {row["key_id"] for row in await transaction.fetch(_SQL.keys_lost, asked)}
    return [(key, row) for key, row in sealed if key in lost]


def _key_of(row: Row) -> UUID | None:
    try:
        sealed = stored_form(row["state"]).sealed
    except Unreadable:  # `audit verify` reports it
        return None
    return None if sealed is None else sealed.key


def _subject(row: Row) -> str | None:
    data = msgspec.json.decode(stored_form(row["state"]).data)
    return next((data[name] for name in _NAMES if data.get(name)), None)
