"""How pages write moments, numbers and amounts."""

from datetime import datetime, timedelta, timezone
from decimal import Decimal

from service.pages.formats import amount, grouped, moment

AT = datetime(2026, 3, 1, 1, 5, 9, 123456, tzinfo=timezone(timedelta(hours=2)))


def test_a_moment_is_a_time_in_utc_with_what_a_script_needs():
    """Its attribute says to the minute, second or millisecond what its words say in UTC."""
    assert moment(AT) == '<time datetime="2026-02-28T23:05Z">28 February 2026, 23:05 UTC</time>'
    assert moment(AT, "seconds") == (
        '<time datetime="2026-02-28T23:05:09Z">28 February 2026, 23:05:09 UTC</time>'
    )
    assert 'datetime="2026-02-28T23:05:09.123Z"' in moment(AT, "milliseconds")
    assert moment(None) == "-"


def test_digits_are_grouped():
    """In numbers and in amounts, which always have two decimals."""
    assert [grouped(one) for one in (0, 999, 1234567, None)] == ["0", "999", "1,234,567", "-"]
    assert amount(Decimal("999999999999999.5")) == "999,999,999,999,999.50"
    assert amount(None) == "-"
