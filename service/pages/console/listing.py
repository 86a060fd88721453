"""What the console's lists share: the mode they show, their parameters, their next page."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from service.core.errors import invalid
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.ledger.database import Row

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS_MAX: Final = 16
_TEXT_MAX: Final = 255

T = TypeVar("T", bound=str)

Place = tuple[datetime, str]
"""A moment and an id: where a page of a list begins. No two rows share both."""


def mode_of(request: AnyRequest) -> Mode:
    """Return the mode that a page shows: `?mode=test`, or else live."""
    return "test" if asked(request, "mode") == "test" else "live"


def asked(request: AnyRequest, name: str) -> str | None:
    """Return a parameter of the address; None where it is absent or empty."""
    value = request.query_params.get(name)
    if value is not None and ("\0" in value or len(value) > _TEXT_MAX):
        raise invalid(name, "not a value of this list")
    return value or None


def sought(request: AnyRequest) -> str | None:
    """Return the text that a list is searched for; None where there is none but white space."""
    return (asked(request, "q") or "").strip() or None


def place(last: Place | None) -> str | None:
    """Return a place as addresses have it: microseconds since 1970, a dot, the id."""
    if last is None:
        return None
    return f"{(last[0] - _EPOCH) // timedelta(microseconds=1)}.{last[1]}"


def shown_page(
    request: AnyRequest, name: str, rows: Sequence[Row], most: int, at: str, row_id: str
) -> dict[str, Any]:
    """Return what a template shows of rows, of which one more than `most` was read.

    The rows under their `name`; `before`, the place where the next page begins, None at the end;
    and `is_first`. `at` and `row_id` are the columns of a place.
    """
    last = rows[most - 1] if len(rows) > most else None
    return {
        name: rows[:most],
        "before": place((last[at], last[row_id]) if last else None),
        "is_first": "before" not in request.query_params,
    }


def asked_one_of(request: AnyRequest, name: str, values: Sequence[T]) -> T | None:
    """Return a parameter that has one of these values; refuses any other."""
    value = asked(request, name)
    if value is None:
        return None
    found = next((one for one in values if one == value), None)
    if found is None:
        raise invalid(name, f"expected one of {', '.join(values)}")
    return found


def query_of(**parameters: str | None) -> str:
    """Return a query string with the parameters that have a value, for links within a page."""
    return urlencode({name: value for name, value in parameters.items() if value})


def asked_moment(request: AnyRequest, name: str) -> datetime | None:
    """Return a moment of the address, in UTC where it names no zone; refuses other texts."""
    value = asked(request, name)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        expected = "expected a date and a time, such as 2026-03-31T12:00 (UTC)"
        raise invalid(name, expected) from None


def asked_place(request: AnyRequest) -> Place | None:
    """Return the place that an address has; refuses other texts."""
    value = asked(request, "before")
    if value is None:
        return None
    number, point, last_id = value.partition(".")
    if not (point and number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX):
        raise invalid("before", "not a place in this list")
    return _EPOCH + timedelta(microseconds=int(number)), last_id
