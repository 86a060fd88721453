"""A list as a CSV file, sent page by page, with nothing in it that a spreadsheet would run.

A file costs few queries and little time, however few of many rows its filter finds, and a partner
is sent one at a time: in each process, so in as many as there are.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from litestar.background_tasks import BackgroundTask
from litestar.response import Stream

from service.core.csv_lines import cell, csv_lines
from service.core.errors import Refusal
from service.ledger.database import LedgerUnavailable, Row
from service.pages.words import TEXTS

ROWS_MAX: Final = 10_000
"""Of one file. More are several files, by what the list can be filtered by."""
PAGE_ROWS: Final = 500
PAGES_MAX: Final = 50
"""That are read for one file, each of which looks at a thousand rows at most."""
SECONDS_MAX: Final = 20.0
"""That the database may take for one file, however long its reader takes."""

_MARK: Final = "\ufeff"
"""By which a spreadsheet knows UTF-8."""

P = TypeVar("P")
ReadPage = Callable[[int, P | None], Awaitable[tuple[Sequence[Row], P | None]]]
"""Returns up to so many rows from a place on, and where the next begin, None at the end."""


@dataclass(slots=True, weakref_slot=True)
class _Turn:
    is_over: bool = False

    def end(self) -> None:
        self.is_over = True


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """The files that this process is sending."""

    # Weakly: whatever becomes of a response, nobody is kept from the next file.
    _turns: WeakValueDictionary[str, _Turn] = field(
        default_factory=WeakValueDictionary[str, _Turn], init=False
    )

    def file(self, partner_id: str, name: str, columns: Sequence[str], page: ReadPage[P]) -> Stream:
        """Return a file of the rows' columns; a last row says so where it leaves rows out.

        Refuses with `rate_limited` while another one is being sent to the partner.
        """
        known = self._turns.get(partner_id)
        if known is not None and not known.is_over:
            raise Refusal("rate_limited")
        self._turns[partner_id] = turn = _Turn()

        async def text() -> AsyncIterator[bytes]:
            try:
                yield (_MARK + csv_lines([columns])).encode()
                async for rows in _rows(columns, page):
                    yield csv_lines(rows).encode()
            finally:
                turn.end()

        return Stream(
            text(),
            media_type="text/csv",
            headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
            background=BackgroundTask(turn.end),  # also when its reader went away
        )


async def _rows(columns: Sequence[str], page: ReadPage[P]) -> AsyncIterator[list[list[str]]]:
    place, left, spent = None, ROWS_MAX, 0.0
    for _ in range(PAGES_MAX):
        began = time.monotonic()
        try:
            rows, place = await page(min(PAGE_ROWS, left), place)
        except LedgerUnavailable:  # what was sent is sent: the file says that it is not all
            break
        spent += time.monotonic() - began
        yield [[cell(row[name]) for name in columns] for row in rows]
        left -= len(rows)
        if place is None:
            return
        if left <= 0 or spent >= SECONDS_MAX:
            break
    yield [[TEXTS["lists.csv_cut"], *[""] * (len(columns) - 1)]]
