"""Moments that people give a command."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final

import click
import msgspec

_FINER: Final = re.compile(r"(\.[0-9]{6})[0-9]+", re.ASCII)


def instant(text: str) -> datetime:
    """Parse a moment in RFC 3339 and return it in UTC; it must have an offset."""
    # A finer time would be rounded, and rounding up would include what came later.
    text = _FINER.sub(r"\1", text)
    try:
        moment = msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)])
        return moment.astimezone(UTC)
    except (msgspec.ValidationError, OverflowError) as error:
        expected = f"{text!r}: expected RFC 3339 such as 2026-03-01T10:15:30Z"
        raise click.BadParameter(expected) from error
