"""Reading all events of some topics from the log, if no read model may decide which there are."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from service.ledger.database import Row
from service.ledger.decoding import PAGE_BYTES_MAX, is_full
from service.ledger.events import Event
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

RANGE: Final = 20_000
"""Ids that one statement looks at: tens of milliseconds of PostgreSQL's."""

_SQL = queries("service.ledger")


async def appended(ledger: Ledger) -> int:
    """Return about how many events there are: ids are drawn in order, with gaps."""
    row = await ledger.database.background.fetchrow(_SQL.appended)
    return row["last"] if row is not None else 0


async def each_of(ledger: Ledger, topics: Iterable[type[Event]]) -> AsyncIterator[Sequence[Row]]:
    """Yield the stored events of some topics, numbered or not, in the order of their appending.

    A page has PAGE_BYTES_MAX bytes, or one event more, and may be empty. What commits before this
    begins is there; of what is appended meanwhile, some may be.
    """
    names = [topic.__name__ for topic in topics]
    done, last = 0, await appended(ledger)
    while done < last:
        end = done + RANGE
        rows = await ledger.database.background.fetch(
            _SQL.of_topics, names, done, end, PAGE_BYTES_MAX
        )
        yield rows
        done = rows[-1]["append_id"] if is_full(rows) else end
