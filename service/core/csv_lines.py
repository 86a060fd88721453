"""Lines of CSV files with nothing in them that a spreadsheet would run."""

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Final

from service.core.clock import timestamp

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a cell begins that a spreadsheet takes for a formula, or for one after white space."""

Cell = str | datetime | None


def cell(value: Cell) -> str:
    """Return a value as text that no spreadsheet runs: an apostrophe goes before a formula."""
    if value is None:
        return ""
    text = timestamp(value) if isinstance(value, datetime) else value
    return f"'{text}" if text.lstrip(" \xa0").startswith(_FORMULA) else text


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as lines, every cell quoted."""
    lines = StringIO(newline="")
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(rows)  # whatever separates cells elsewhere
    return lines.getvalue()
