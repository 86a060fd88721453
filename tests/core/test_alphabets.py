"""A name whose letters are of several alphabets is recognised."""

from service.core.alphabets import mixed_alphabets
from tests.tables import every_row

ONE = ("", "Books & Co 24", "Łódź", "Бухгалтерия", "株式会社ソニー Sony", "서울 Books", "Ελλάς")
MIXED = {
    "P\u0430yments": ["Cyrillic", "Latin"],
    "\u0392ank": ["Greek", "Latin"],
    "\U0001d401ooks": ["Latin", "Mathematical"],
    "\uff22ooks": ["Fullwidth", "Latin"],
}


def test_letters_of_several_alphabets_are_named():
    """Those of East Asia, which are written together, count as none."""
    with every_row() as row:
        for text in ONE:
            with row(text):
                assert mixed_alphabets(text) == []
        for text, alphabets in MIXED.items():
            with row(ascii(text)):
                assert mixed_alphabets(text) == alphabets
