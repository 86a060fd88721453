"""Reading the whole log of a ledger, a page at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

from service.core.progress import Advance
from service.ledger.database import Row
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

SECONDS_MAX: Final = 60.0
"""For one page of events."""

_SQL = queries("service.privacy")
_T = TypeVar("_T")


async def each_page(
    ledger: Ledger,
    events_max: int,
    advance: Advance,
    read: Callable[[Transaction, Sequence[Row]], Awaitable[_T]],
) -> AsyncIterator[_T]:
    """Yield what `read` makes of each page of events, reporting progress to `advance`."""
    last = 0
    while True:
        async with ledger.transaction(background=SECONDS_MAX) as transaction:
            rows = await transaction.fetch(_SQL.find_events, last, events_max, PAGE_BYTES_MAX)
            if not rows:
                return
            found = await read(transaction, rows)
        yield found
        advance(rows[-1]["append_id"] - last)
        last = rows[-1]["append_id"]
