"""Reading all events of some topics from the log, if no read model may decide which there are."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from service.core.progress import Advance
from service.ledger.database import Row
from service.ledger.decoding import PAGE_BYTES_MAX, Unread, is_full
from service.ledger.events import Event
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

RANGE: Final = 20_000
"""How many ids one statement reads: tens of milliseconds of PostgreSQL's time."""

_SQL = queries("service.ledger")


async def appended(ledger: Ledger) -> int:
    """Return about how many events there are: ids are drawn in order, with gaps."""
    row = await ledger.database.background.fetchrow(_SQL.appended)
    return row["last"] if row is not None else 0


async def each_of(
    ledger: Ledger, topics: Iterable[type[Event]], advance: Advance, *, told: str = ""
) -> AsyncIterator[Sequence[Row]]:
    """Yield the stored events of some topics, numbered or not, in the order of their appending.

    With `told`, only those whose clear part has it; it is of characters that JSON never escapes,
    as ids are. A page has PAGE_BYTES_MAX bytes, or one event more, and may be empty. What commits
    before this begins is there; of what is appended meanwhile, some may be. Progress is reported to
    `advance`, as the ids that were passed of `appended`.
    """
    names, part = [topic.__name__ for topic in topics], told.encode()
    done, last = 0, await appended(ledger)
    while done < last:
        end = min(done + RANGE, last)
        rows = await ledger.database.background.fetch(
            _SQL.of_topics, names, done, end, PAGE_BYTES_MAX, part
        )
        yield rows
        passed = rows[-1]["append_id"] if is_full(rows) else end
        advance(passed - done)
        done = passed


async def placed(ledger: Ledger, unread: Iterable[Unread]) -> list[Unread]:
    """Return each of some events once, as they were appended, with its position if it has one."""
    found = {one.append_id: one for one in unread}
    rows = await ledger.database.background.fetch(_SQL.positions, list(found)) if found else []
    positions = {row["append_id"]: row["position"] for row in rows}
    return [found[one]._replace(position=positions.get(one, 0)) for one in sorted(found)]
