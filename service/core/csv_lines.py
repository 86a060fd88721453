"""Lines of CSV files with nothing in them that a spreadsheet would run."""

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Final

from service.core.clock import timestamp

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a cell begins that a spreadsheet takes for a formula, or for one after white space."""

_SPLIT: Final = re.compile("([;\t\r\n])(?=[ \xa0]*[=+@\uff1d\uff0b\uff0d\uff20-])")
"""What begins a cell within a cell for a program that separates by semicolons or tabs, as many are
set to: to it a quotation mark behind a comma is a letter, and does not hold the text together."""

Cell = str | datetime | None


def cell(value: Cell) -> str:
    """Return a value as text that no spreadsheet runs: an apostrophe goes before a formula.

    Also where one begins after what separates cells elsewhere.
    """
    if value is None:
        return ""
    text = timestamp(value) if isinstance(value, datetime) else _SPLIT.sub(r"\1'", value)
    return f"'{text}" if text.lstrip(" \xa0").startswith(_FORMULA) else text


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as lines, every cell quoted."""
    lines = StringIO(newline="")
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(rows)  # whatever separates cells elsewhere
    return lines.getvalue()
