"""Lines of CSV files: what other programs make of them, and what they were."""

import csv
import io
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.core.csv_lines import cell, csv_lines

SEPARATORS = ",;|\t"
QUOTES = ('"', "'", None)
TEXT = st.text("x=-'\" \n\r" + SEPARATORS, max_size=8)


def opened(file, separator, quote):
    """Return the cells of a file to a program with its own separator and quotation mark."""
    quoting = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    lines = io.StringIO(file, newline="")
    rows = csv.reader(lines, delimiter=separator, quotechar=quote, quoting=quoting)
    return [one for row in rows for one in row]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+2", "'=1+2"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'''=1"),
        ("  =1", "'  =1"),
        ("\uff1d1", "'\uff1d1"),
        ("a;=1", "a;'''=1"),
        ("a\t \xa0@x;-1\r\n+1", "a\t''' \xa0@x;'''-1\r\n'''+1"),
        ("case-1", "case-1"),
        ("one; two, three", "one; two, three"),
        ("Bakery - Baker", "Bakery - Baker"),
        ('[{"a":"-1","b":1}]', '[{"a":"-1","b":1}]'),
        ("", ""),
        (None, ""),
        (datetime(2026, 3, 31, 12, tzinfo=UTC), "2026-03-31T12:00:00.000Z"),
    ],
)
def test_no_cell_is_a_formula(value, expected):
    """Whatever a reference begins with, a spreadsheet shows it."""
    assert cell(value) == expected


@given(st.lists(st.lists(TEXT, min_size=2, max_size=2), max_size=2))
@example([['x;=1+1;"', '"";=1+1'], ["x\n=1+1;y", "\t=1+1"], [";;  +1", "x|=1+1"]])
@example([['x;"=1+1;y', 'x\t"=1+1\ty'], ['x\n"=1+1\ny', 'x; " =1;y']])
@example([['x;"=HYPERLINK(""https://example.com/""&A1);y', "x,=1+1,y"], ["x;'=1+1", "x,'=1+1"]])
def test_no_cell_is_a_formula_to_a_program_that_separates_or_quotes_otherwise(rows):
    """To one that separates by semicolons, a quotation mark behind a comma is a letter."""
    file = csv_lines([[cell(text) for text in row] for row in rows])
    for separator, quote in product(SEPARATORS, QUOTES):
        found = opened(file, separator, quote)
        formulas = [one for one in found if one.strip().startswith(("=", "+", "-", "@"))]
        assert not formulas, (separator, quote)


@given(TEXT)
def test_a_cell_reads_back(text):
    """But for the apostrophes before formulas, of which none is left where there is no formula."""
    assert opened(csv_lines([["a", cell(text)]]), ",", '"') == ["a", cell(text)]
    assert cell(text).replace("'", "") == text.replace("'", "")
    if not text.lstrip(" ").startswith(("\t", "\r", "\n")) and not {"=", "-"} & set(text):
        assert cell(text) == text
