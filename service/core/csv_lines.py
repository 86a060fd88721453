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

_SPLIT: Final = re.compile(
    "([;|\t\r\n](?=[ \xa0\"']*{0})|,(?=[ \xa0']*{0}))".format("[=+@\uff1d\uff0b\uff0d\uff20-]")
)
"""What begins a cell within a cell for a program that separates or quotes otherwise than this file
does, as many are set to. To one that separates by semicolons, a quotation mark behind a comma is a
letter, and two before a formula are an empty text. Spaces are left: names have dashes behind them.
"""

_HOLD: Final = "'''"
"""Goes before a formula within a cell. One apostrophe would vanish where apostrophes quote."""

Cell = str | datetime | None


def cell(value: Cell) -> str:
    """Return a value as text that no spreadsheet runs: an apostrophe goes before a formula.

    Three go before one within the text, where it would begin a cell elsewhere.
    """
    if value is None:
        return ""
    text = timestamp(value) if isinstance(value, datetime) else _SPLIT.sub(rf"\1{_HOLD}", value)
    return f"'{text}" if text.lstrip(" \xa0").startswith(_FORMULA) else text


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as lines, every cell quoted."""
    lines = StringIO(newline="")
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(rows)  # whatever separates cells elsewhere
    return lines.getvalue()
