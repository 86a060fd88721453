"""How pages write moments, numbers and amounts: one form of each, everywhere."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, Literal

from markupsafe import Markup

NOTHING: Final = "-"

Precision = Literal["minutes", "seconds", "milliseconds"]


def moment(at: datetime | None, to: Precision = "minutes") -> str:
    """Return a moment as a `<time>` in UTC, with as much of it as its attribute has.

    The pages' script shows it in the reader's own time zone, and in UTC when it is pointed at.
    """
    if at is None:
        return NOTHING
    at = at.astimezone(UTC)
    time = at.time().isoformat(to)
    shown = f"{at.day} {at:%B %Y}, {time} UTC"
    return Markup('<time datetime="{}T{}Z">{}</time>').format(at.date(), time, shown)


def day(iso: str | None) -> str:
    """Return a calendar day of the form `2026-02-04` as people read it."""
    if not iso:
        return NOTHING
    one = date.fromisoformat(iso)
    return f"{one.day} {one:%B %Y}"


def grouped(number: float | Decimal | None) -> str:
    """Return a number with its digits in groups of three: `12,345`."""
    return NOTHING if number is None else f"{number:,}"


def amount(value: Decimal | None) -> str:
    """Return an amount of money, whose currency the contract does not know: `1,234.50`."""
    return NOTHING if value is None else f"{value:,.2f}"
