"""Objects of a bucket that no row knows.

The bucket is not restored with the database: a restore loses rows and events of documents that are
still stored.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from service.core.progress import Show
from service.documents import paths
from service.documents.naming import Listed, named_aside, named_in_log
from service.facts.entities import entity_stream
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.storage.port import NoBucket, ObjectStore, StoredObject

PAGE: Final = 1_000
"""Objects that are looked up at once."""
FOUND_MAX: Final = 100_000
"""About how many names are kept in memory; more are found once these are dealt with."""

_SQL = queries("service.documents")


async def pages(
    store: ObjectStore, prefix: str, objects_max: int = PAGE
) -> AsyncIterator[list[StoredObject]]:
    """Yield the objects under a prefix, some at a time."""
    page: list[StoredObject] = []
    async for one in store.each(prefix):
        page.append(one)
        if len(page) == objects_max:
            yield page
            page = []
    if page:
        yield page


async def unknown(ledger: Ledger, store: ObjectStore, before: datetime) -> AsyncIterator[list[str]]:
    """Yield the names of objects that no row of a ledger knows, a page at a time.

    Those whose paths were minted since `before` are left out: rows are read after the listing, and
    an upload may be under way.
    """
    fetch = ledger.database.background.fetch
    async for page in pages(store, paths.ALL):
        names = [one.name for one in page]
        known = {row["path"] for row in await fetch(_SQL.known, names)}
        minted_at = {name: paths.minted_at(name) for name in names if name not in known}
        yield [name for name, at in minted_at.items() if at is None or at < before]


async def of_entities(ledger: Ledger, names: Sequence[str]) -> list[str]:
    """Return those of some objects' names that are documents of this ledger's entities."""
    streams = {
        entity_id: entity_stream(ledger.name, entity_id)
        for entity_id in set(map(paths.entity_of, names))
        if entity_id is not None
    }
    fetch = ledger.database.background.fetch
    begun = {row["stream_id"] for row in await fetch(_SQL.begun, list(streams.values()))}
    return [name for name in names if streams.get(paths.entity_of(name) or "") in begun]


async def known_to_nobody(
    ledger: Ledger, store: ObjectStore, before: datetime, listed: Listed, show: Show
) -> Collection[str]:
    """Return the names of objects that no row and no event knows, in their order.

    The log is read only where there are some that no row knows. Without a bucket there are none.
    Raises StorageUnavailable and ArchiveUnavailable.
    """
    names = set[str]()
    with suppress(NoBucket):
        async for few in unknown(ledger, store, before):
            names.update(few)
            if len(names) >= FOUND_MAX:
                break
    if not names:
        return []
    sought = {name.encode() for name in names}
    in_log = await named_in_log(ledger, sought, show)
    named = in_log.by_others.union(*in_log.linked.values())
    named |= await named_aside(ledger, sought, listed)
    left = sorted(name for name in names if name.encode() not in named)
    # One may have been removed since it was listed, with its row.
    return [name for name in left if name in await store.under(name)]
