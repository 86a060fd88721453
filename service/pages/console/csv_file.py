"""A list as a CSV file, sent page by page, with nothing in it that a spreadsheet would run."""

import csv
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Final

from litestar.response import Stream

from service.core.clock import timestamp

ROWS_MAX: Final = 10_000
"""Of one file. More are several files, by what the list can be filtered by."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a cell begins that a spreadsheet takes for a formula, or for one after white space."""
_MARK: Final = "\ufeff"
"""By which a spreadsheet knows UTF-8."""

Cell = str | datetime | None


def csv_file(
    name: str, columns: Sequence[str], pages: AsyncIterator[Iterable[Sequence[Cell]]]
) -> Stream:
    """Return a file whose rows come page by page; the reader of `pages` bounds them."""

    async def text() -> AsyncIterator[bytes]:
        yield (_MARK + _lines([columns])).encode()
        async for rows in pages:
            yield _lines([cell(one) for one in row] for row in rows).encode()

    return Stream(
        text(),
        media_type="text/csv",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


def cell(value: Cell) -> str:
    """Return a value as text that no spreadsheet runs: an apostrophe goes before a formula."""
    if value is None:
        return ""
    text = timestamp(value) if isinstance(value, datetime) else value
    return f"'{text}" if text.lstrip(" \xa0").startswith(_FORMULA) else text


def _lines(rows: Iterable[Sequence[str]]) -> str:
    lines = StringIO(newline="")
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(rows)  # whatever separates cells elsewhere
    return lines.getvalue()
