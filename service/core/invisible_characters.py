"""Characters that nobody sees: controls, marks that reorder text or have no width, blank letters.

With them a name can rewrite the words around it, or look like another one. So can a tower of
accents, which is drawn over other lines: those above the fourth count as unseen. People's own forms
refuse them; what partners send stays as it is (contract), and pages show where they are.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final
from unicodedata import category

_RANGES: Final = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls, but for tab and line ends
    r"\u2028\u2029\ud800-\udfff"  # line and paragraph separators, lone surrogates
    # Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt, which has the marks that
    # reorder text, without the three below
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\u2800\ufff9-\ufffb"  # the blank Braille pattern, annotations between the lines
)
_SYMBOLS: Final = r"\u2190-\u2bff\U0001f000-\U0001faff"
_SIGNS: Final = r"\xa9\xae\u203c\u2049\u2122\u2139\u3030\u303d\u3297\u3299"
"""Beyond those, what emoji-variation-sequences.txt has but for the keycaps' digits."""
_UNSEEN: Final = re.compile(
    rf"[{_RANGES}]"
    # Two variation selectors and the joiner are seen in emoji and keycaps, and nowhere else.
    rf"|(?<![{_SYMBOLS}{_SIGNS}])(?!(?<=[0-9#*])\ufe0f\u20e3)[\ufe0e\ufe0f]"
    rf"|(?<![{_SYMBOLS}])(?<![{_SYMBOLS}]\ufe0f)\u200d|\u200d(?![{_SYMBOLS}])"
)
_LINE_ENDS: Final = re.compile(r"[\t\n\r]")

MARKS_MAX: Final = 4
"""On a letter: no script writes words with more."""
_MARKS: Final = frozenset({"Mn", "Me"})
_PERHAPS_A_TOWER: Final = re.compile(rf"[^\w\s\x00-\u02ff]{{{MARKS_MAX + 1},}}")
"""Has all marks, and signs that are no letters."""


def visible(text: str) -> str:
    """Return a text with `[U+202E]` for each character that nobody would see.

    White space is seen between words. A text that has nothing else would leave no link to follow.
    """
    if text.isspace():
        return "".join(map(_code, text))
    if text.isascii() and text.isprintable():
        return text
    return _replaced(text, _code)


def _code(character: str) -> str:
    return f"[U+{ord(character):04X}]"


def blanked(text: str) -> str:
    """Return a text with a space for each character that nobody would see, and each line end."""
    return _LINE_ENDS.sub(" ", _replaced(text, lambda _: " "))


def removed(text: str) -> str:
    """Return a text on one line without the characters that nobody would see."""
    return " ".join(_replaced(" ".join(text.split()), lambda _: "").split())


def _replaced(text: str, instead: Callable[[str], str]) -> str:
    seen = _UNSEEN.sub(lambda found: instead(found[0]), text)
    return _PERHAPS_A_TOWER.sub(lambda found: _cut_tower(found[0], instead), seen)


def _cut_tower(run: str, instead: Callable[[str], str]) -> str:
    characters = list(run)
    for at in _marks_too_many(run):
        characters[at] = instead(run[at])
    return "".join(characters)


def _marks_too_many(run: str) -> Iterator[int]:
    """Yield where marks stand that are too high, each character of a run being looked at once."""
    height = 0
    for at, one in enumerate(run):
        height = height + 1 if category(one) in _MARKS else 0
        if height > MARKS_MAX:
            yield at


def unseen_fault(text: str) -> str | None:
    """Return why a text of several lines is refused, or None."""
    if text.isascii() and text.isprintable():
        return None
    if found := _UNSEEN.search(text):
        return f"contains a character that cannot be seen (U+{ord(found[0]):04X})"
    runs = (found[0] for found in _PERHAPS_A_TOWER.finditer(text))
    high = next((run[at] for run in runs for at in _marks_too_many(run)), None)
    return high and f"contains more than {MARKS_MAX} marks on a letter (U+{ord(high):04X})"


def name_fault(text: str) -> str | None:
    """Return why a text cannot stand on one line, or None."""
    if text.isspace():
        return "contains only white space"
    return "contains line breaks" if _LINE_ENDS.search(text) else unseen_fault(text)
