"""Finding keys that are stored and are not what they should be.

A wrapped key is bound to its name, so one that lies in another's place, was altered, or has the
wrong master key's id beside it does not open. A key whose subject was erased has no business there
at all: somebody put it back. The log says which event keys were added, and since when each signs.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from service.core.clock import timestamp, to_milliseconds
from service.facts.event_keys import EventKeyAdded, event_key_stream
from service.ledger.database import Row
from service.ledger.encryption import MasterKeys
from service.ledger.erased import erased
from service.ledger.ledger import Ledger
from service.ledger.service_keys import EVENT_KEY_IDS
from service.ledger.sql import queries
from service.privacy.beginnings import is_of
from service.privacy.erasure_list import EntryUnreadable, ErasureList
from service.privacy.genuine import Genuine
from service.privacy.listed_streams import listed_streams
from service.privacy.rotation import BATCH, DATA_KEYS, EVENT_KEYS, WrappedTable, opened_key

COMPARED_MAX: Final = 200
"""Keys that are compared with each other, to tell which have changed places."""
REVIVED: Final = "its subject was erased, and it came back"
LISTED: Final = "its subject's erasure is listed, and the database lacks it: privacy reapply"
GONE: Final = "the log says that it was added, and it is gone"
STRANGE: Final = "the service has no such key, and did not write it"

_SQL = queries("service.privacy")


class FaultyKey(NamedTuple):
    """A stored key and what is wrong with it; `keys` is its table, `name` its name in there."""

    ledger: str
    keys: str
    name: str
    fault: str


async def faulty_in(
    ledger: Ledger, table: WrappedTable, ring: MasterKeys
) -> AsyncIterator[FaultyKey]:
    """Yield the keys of a table that the ring does not open, and those that came back."""
    last, unopened = table.first, list[Row]()
    query, fetch = _SQL[f"check_{table.name}"], ledger.database.background.fetch
    while rows := await fetch(query, last, BATCH):
        if table is DATA_KEYS:
            told = [UUID(row["name"]) for row in rows if row["told_erased"]]
            for key_id in sorted(await erased(fetch, await ledger.binding(), told)):
                yield FaultyKey(ledger.name, table.name, str(key_id), REVIVED)
        for row in rows:
            if opened_key(ring, row, row["master_key_id"], table) is None:
                unopened.append(row)
        if len(unopened) > COMPARED_MAX:
            for row in unopened:
                yield FaultyKey(ledger.name, table.name, row["name"], _fault(ring, table, row))
            unopened.clear()
        last = rows[-1]["name"]
    for row in unopened:
        fault = _fault(ring, table, row, unopened)
        yield FaultyKey(ledger.name, table.name, row["name"], fault)


async def faulty_by_list(ledger: Ledger, listed: ErasureList) -> AsyncIterator[FaultyKey]:
    """Yield keys of subjects whose erasure is listed outside the database, and not in the log.

    Raises ArchiveUnavailable.
    """
    fetch = ledger.database.background.fetch
    named = await listed_streams(ledger, await listed.names(ledger.name), fetch)
    kept = [row["key_id"] for row in await fetch(_SQL.keys_left, [one for _, one in named])]
    gone = await erased(fetch, await ledger.binding(), kept)
    for key_id in (one for one in kept if one not in gone):
        of_its_id = [name for name, stream in named if stream == key_id]
        if await _is_one_of(ledger, listed, of_its_id):
            yield FaultyKey(ledger.name, "data_keys", str(key_id), LISTED)


async def _is_one_of(ledger: Ledger, listed: ErasureList, names: Sequence[str]) -> bool:
    """Return whether one of the listed erasures of an id is of the stream that is there."""
    for name in names:
        try:
            if await is_of(ledger, await listed.read(name)):
                return True
        except EntryUnreadable:  # `privacy reapply` names it
            return True
    return False


async def faulty_by_log(accounts: Ledger) -> AsyncIterator[FaultyKey]:
    """Yield the event keys that the log has added and that are gone, or sign at another time."""
    genuine = Genuine(accounts.codec, await accounts.binding())
    streams = [event_key_stream(key_id) for key_id in range(EVENT_KEY_IDS)]
    async with accounts.transaction() as transaction:
        told = await genuine.told(transaction, streams, EventKeyAdded)
        rows = await transaction.fetch(_SQL.event_keys_sign)
    stored = {row["key_id"]: row for row in rows}
    for added in (event for _, event, _ in told if isinstance(event, EventKeyAdded)):
        row = stored.get(added.event_key)
        if row is None:
            yield FaultyKey(accounts.name, EVENT_KEYS.name, f"event key {added.event_key}", GONE)
        elif to_milliseconds(row["signs_from"]) != added.signs_from:
            at = f"{timestamp(row['signs_from'])}, and by the log {timestamp(added.signs_from)}"
            yield FaultyKey(accounts.name, EVENT_KEYS.name, row["name"], f"it signs from {at}")


def _fault(ring: MasterKeys, table: WrappedTable, row: Row, others: Sequence[Row] = ()) -> str:
    """Return why a key does not open; `others` are keys that it may have changed places with."""
    if table.names and row["name"] not in table.names:
        return STRANGE
    label = row["master_key_id"]
    for master in ring.ids:
        if opened_key(ring, row, master, table) is not None:
            return f"it names master key {label}, and {master} wrapped it"
    for other in others:
        if any(opened_key(ring, row, master, table, other) is not None for master in ring.ids):
            return f"it is the key of {other['name']}"
    if label not in ring.ids:
        return f"no master key {label} in the ring"
    return "it was altered, or belongs elsewhere"
