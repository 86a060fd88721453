"""A name whose letters are of several alphabets, or of one that is not Latin, is recognised."""

from service.pages.backoffice.alphabets import alphabets
from tests.tables import every_row

LATIN = ("", "24", "Books & Co 24", "Łódź", "株式会社ソニー Sony", "株式会社", "서울 Books")
OTHER = {
    "Бухгалтерия": ["Cyrillic"],
    "\u0405\u0441\u043e\u0440\u0435 24": ["Cyrillic"],
    "Ελλάς": ["Greek"],
    "P\u0430yments": ["Cyrillic", "Latin"],
    "\u0392ank": ["Greek", "Latin"],
    "\U0001d401ooks": ["Latin", "Mathematical"],
    "\uff22ooks": ["Fullwidth", "Latin"],
}


def test_alphabets_are_named_but_for_latin_alone():
    """Those of East Asia, which are written together, count as none."""
    with every_row() as row:
        for text in LATIN:
            with row(text):
                assert alphabets(text) == []
        for text, named in OTHER.items():
            with row(ascii(text)):
                assert alphabets(text) == named
