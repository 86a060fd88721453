"""The helper that walks tables hides no failure."""

import pytest

from tests.tables import every_row


def walk():
    """Walk a table of which two rows fail."""
    with every_row() as row:
        for number in range(4):
            with row("number", number):
                assert number != 1, "is one"
                assert number != 2 or {}["two"]


def test_every_failing_row_is_reported():
    """With its name and reason, whatever was raised; passing rows are not reported."""
    with pytest.raises(AssertionError) as reported:
        walk()
    text = str(reported.value)
    assert "2 of 4 rows fail" in text
    assert "[number | 1] AssertionError: is one" in text
    assert "[number | 2] KeyError: 'two'" in text
    assert "[number | 3]" not in text


def test_a_refusal_that_does_not_come_fails_its_row():
    """A `pytest.raises` without an exception is a failure like any other."""
    with (
        pytest.raises(AssertionError, match="DID NOT RAISE"),
        every_row() as row,
        row("none"),
        pytest.raises(ValueError, match="x"),
    ):
        pass


def test_an_empty_table_fails():
    """It would test nothing."""
    with pytest.raises(AssertionError, match="no rows"), every_row():
        pass
