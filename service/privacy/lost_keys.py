"""Finding data keys that are missing although their subject was not erased: data loss.

And those that are there and do not open what is encrypted under them, such as an older key of the
same name that somebody put in its place. Only events of this service say what is under a key:
whoever has a ledger's login can insert one that names any.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from service.core.progress import Advance
from service.ledger.codec import DAMAGE, stored_form
from service.ledger.database import Row
from service.ledger.encryption import DataKey, DecryptionFailed, KeyUnknown
from service.ledger.erased import erased
from service.ledger.events import Unreadable
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.privacy.log_pages import each_page
from service.privacy.subjects import SUBJECT_FIELDS

PAGE: Final = 1000
NAMED_MAX: Final = 1000
"""Keys that are listed. Events of further keys are only counted, so memory stays bounded."""

_SQL = queries("service.privacy")


class Lost(NamedTuple):
    """A lost key, and the first event that cannot be opened without it."""

    data_key: UUID
    subject: str | None
    topic: str
    position: int | None


class LostKeysFound(NamedTuple):
    """`events` counts events encrypted under lost keys; `keys` lists at most NAMED_MAX keys.

    So do `unfit_events` and `unfit_keys` for keys that are there and do not open their events.
    `foreign_events` counts events that name a key, and that this service did not write.
    """

    events: int
    keys: list[Lost]
    unfit_events: int
    unfit_keys: list[Lost]
    foreign_events: int


class _Page(NamedTuple):
    """Events of a page by the key that is lost, or does not open them, and how many are others'."""

    lost: list[tuple[UUID, Row]]
    unfit: list[tuple[UUID, Row]]
    foreign: int


async def find_lost_keys(ledger: Ledger, advance: Advance) -> LostKeysFound:
    """Check every event of a ledger, reporting progress to `advance`."""

    async def read(transaction: Transaction, rows: Sequence[Row]) -> _Page:
        named = [(key, row) for row in rows if (key := _key_of(row)) is not None]
        ours = {row["append_id"] for row in transaction.binding.ours([row for _, row in named])}
        sealed = [(key, row) for key, row in named if row["append_id"] in ours]
        asked = list({key for key, _ in sealed})
        stored = {row["key_id"]: row for row in await transaction.fetch(_SQL.keys_of_events, asked)}
        gone = {key for key, row in stored.items() if row["wrapped"] is None}
        lost = gone - await erased(transaction.fetch, transaction.binding, gone)
        keys = {key: _opened(ledger, row) for key, row in stored.items() if key not in gone}
        return _Page(
            [(key, row) for key, row in sealed if key in lost],
            [(key, row) for key, row in sealed if _is_unfit(ledger, keys.get(key), row)],
            len(named) - len(sealed),
        )

    events, unfit_events, foreign_events = 0, 0, 0
    keys, unfit_keys = dict[UUID, Lost](), dict[UUID, Lost]()
    async for page in each_page(ledger, PAGE, advance, read):
        events += len(page.lost)
        unfit_events += len(page.unfit)
        foreign_events += page.foreign
        for found, named in ((page.lost, keys), (page.unfit, unfit_keys)):
            for key, row in found:
                if key not in named and len(named) < NAMED_MAX:
                    named[key] = Lost(key, _subject(row), row["topic"], row["position"])
    found_keys, found_unfit = list(keys.values()), list(unfit_keys.values())
    return LostKeysFound(events, found_keys, unfit_events, found_unfit, foreign_events)


def _key_of(row: Row) -> UUID | None:
    try:
        sealed = stored_form(row["state"]).sealed
    except Unreadable:  # `audit verify` reports it
        return None
    return None if sealed is None else sealed.key


def _opened(ledger: Ledger, row: Row) -> DataKey | None:
    """Return a stored key; None if it does not unwrap, which faulty_keys.py reports."""
    with suppress(KeyUnknown):
        return ledger.master_keys.open_data_key(row["key_id"], row["wrapped"], row["master_key_id"])
    return None


def _is_unfit(ledger: Ledger, key: DataKey | None, row: Row) -> bool:
    """Return whether a key does not open the event that names it."""
    if key is None:
        return False
    place = row["originator_id"], row["originator_version"], row["topic"], row["state"]
    try:
        ledger.codec.decode(*place, key)
    except DecryptionFailed:
        return True
    except Unreadable:  # `audit verify` reports it
        pass
    return False


def _subject(row: Row) -> str | None:
    """Return whom an event is about; None if its data do not say so: `audit verify` reports it."""
    with suppress(*DAMAGE):
        data = msgspec.json.decode(stored_form(row["state"]).data)
        named = (data.get(name) for name in SUBJECT_FIELDS)
        return next((one for one in named if isinstance(one, str) and one), None)
    return None
