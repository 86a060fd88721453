"""Options that several commands have."""

from datetime import timedelta

import click
import pytest

from service.cli.options import Age
from tests.tables import every_row

FEW, MANY = timedelta(hours=2), timedelta(days=99_999)


def test_ages_are_hours_or_days_within_bounds():
    """What no moment could be that long ago is wrong usage, not an internal error."""
    ages = Age(2)
    assert [ages.convert(text, None, None) for text in ("2h", "99999d")] == [FEW, MANY]
    with every_row() as row:
        for text in ("", "7", "d", "1h", "0d", "-1d", "1.5d", "7D", "99999999999d", "\u0663d"):
            with row(text), pytest.raises(click.BadParameter, match="at least 2h, such as 7d"):
                ages.convert(text, None, None)
