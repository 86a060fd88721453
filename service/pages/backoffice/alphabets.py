"""Which alphabets a name is written in: letters of another can look like Latin ones."""

import unicodedata
from typing import Final

_TOGETHER: Final = {
    *("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"),
}
"""Written together, and with Latin letters, in the names of East Asia; none looks like those."""


def alphabets(text: str) -> list[str]:
    """Return the alphabets of a text, such as `["Cyrillic", "Latin"]`; empty where all is Latin.

    The name of a letter begins with its alphabet, or with its style where that is unusual
    (`MATHEMATICAL BOLD CAPITAL A`), which counts as one.
    """
    found = {
        unicodedata.name(letter, "UNKNOWN").partition(" ")[0] for letter in text if letter.isalpha()
    }
    apart = found - _TOGETHER
    return [] if apart == {"LATIN"} else sorted(one.capitalize() for one in apart)
