"""Finding what concerns an entity (docs/ledger-format.md): where in the log those events are."""

from typing import Final

from projections.activity.reader import LOST
from service.core.errors import Refusal
from service.facts.lineages import lineage_stream
from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

SEARCH_SECONDS_MAX: Final = 3600.0
"""Where the index is not used, or far behind, the log is read, once or twice."""

_SQL = queries("service.evidence.export")


async def concerning(
    ledger: Ledger, entity_id: str, size: int, first: int = 1, *, search: bool = False
) -> list[int]:
    """Return the positions of an entity's events from `first` up to `size`; there may be none.

    The read model `activity` lists the events that may concern the entity, as far as it has come,
    and only those are read. `search` reads all events instead, in case the read model lost some.
    Raises Refusal (`entity_not_found`).
    """
    if not entity_id:
        raise Refusal("entity_not_found")
    rows = await _rows(ledger, entity_id, size, first, search=search)
    if not any(row["concerns"] for row in rows):
        before = await _rows(ledger, entity_id, size, 1, search=search) if first > 1 else []
        if not any(row["concerns"] for row in before):
            is_lost = not search and await _has_any(ledger, entity_id, size)
            raise Refusal("entity_not_found", LOST.format(entity_id) if is_lost else None)
    return [row["position"] for row in rows]


async def _has_any(ledger: Ledger, entity_id: str, size: int) -> bool:
    return any(row["concerns"] for row in await _rows(ledger, entity_id, size, 1, search=True))


async def _rows(
    ledger: Ledger, entity_id: str, size: int, first: int, *, search: bool
) -> list[Row]:
    lineages = lineage_stream(ledger.name)
    async with ledger.database.background.transaction(SEARCH_SECONDS_MAX) as connection:
        # Taken before the rest: events that activity adds meanwhile are found in the log, not
        # missed.
        reached = 0 if search else await connection.fetchval(_SQL.indexed.on(ledger.name), size)
        sql = _SQL.entity.on(ledger.name)
        return await connection.fetch(sql, size, entity_id, lineages, first, reached)
