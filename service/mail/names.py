"""Names that others chose, in mails: nothing in one is an address, a link or a number to call."""

import re
import unicodedata
from typing import Final

from service.core.invisible_characters import removed

NAME_CHARACTERS_MAX: Final = 120
"""Of a name as it is shown; longer ones are cut with an ellipsis."""

# What mail programs turn into links: "https://evil.example", "evil.example", "who@evil.example",
# "192.0.2.1". Domains are found by their dots: any script may be around one, and signs and emoji.
_LINK_LIKE: Final = re.compile(r":/|www\.|[^\s@]@[^\s@]|\d\.\d{1,3}\.\d{1,3}\.\d", re.IGNORECASE)
# Browsers read the ideographic full stop as a dot, too.
_DOT: Final = re.compile(
    "[.\N{ONE DOT LEADER}\N{SMALL FULL STOP}\N{FULLWIDTH FULL STOP}"
    "\N{IDEOGRAPHIC FULL STOP}\N{HALFWIDTH IDEOGRAPHIC FULL STOP}]"
)
_VIRAMA: Final = 9
"""Unicode's combining class of the sign that joins two letters of Indic scripts into one."""
# Seven digits or more, whatever signs stand between them: "+44 (20) 7946-0000". Keycaps are digits.
_DIGIT: Final = r"\d(?:\ufe0f?\u20e3)?"
_NUMBER_LIKE: Final = re.compile(rf"[+(]{{0,2}}{_DIGIT}(?:[\W_]{{0,3}}{_DIGIT}){{6,}}")
_NUMBER_SHOWN: Final = "[number]"


def header_name(name: str) -> str:
    """Return a name for a header; empty where it looks like an address, a domain or a number."""
    seen = _beginning(name)
    folded = _folded(seen)
    is_number = any(map(_NUMBER_LIKE.search, {seen, folded}))
    return "" if is_number or _is_link_like(seen, folded) else _cut(seen)


def shown(text: str) -> str:
    """Return a name for the text of a mail: it reads as before and links nowhere."""
    seen = _beginning(text)
    folded = _folded(seen)
    # Digits in circles and the like are read as digits.
    read = folded if _NUMBER_LIKE.search(folded) else seen
    words = _NUMBER_LIKE.sub(_NUMBER_SHOWN, read).split()
    # What is costly to fold is a single word: NFKC makes eighteen letters of some.
    return _cut(" ".join(_disarmed(one, folded if one == seen else _folded(one)) for one in words))


def _beginning(text: str) -> str:
    """Return what people see of a text at most, and a character more if there is more.

    Everything is judged by it: what nobody sees neither hides a link nor makes room for one.
    """
    return removed(text)[: NAME_CHARACTERS_MAX + 1]


def _cut(line: str) -> str:
    return line if len(line) <= NAME_CHARACTERS_MAX else f"{line[: NAME_CHARACTERS_MAX - 1]}…"


def _folded(text: str) -> str:
    """Return a text as people read it: wide letters as plain ones."""
    return unicodedata.normalize("NFKC", text)


def _is_link_like(text: str, folded: str) -> bool:
    """Return whether programs might find a link in a text as it is written, or as it is read."""
    return any(
        _LINK_LIKE.search(one) or any(_is_in_domain(one, dot.start()) for dot in _DOT.finditer(one))
        for one in {text, folded}
    )


def _is_in_domain(text: str, dot: int) -> bool:
    """Return whether the dot at an index may be a domain's.

    What a letter is depends on whom one asks, and on the release of Unicode: every character counts
    but white space and punctuation. No domain ends in digits ("No.1") or one letter ("S.p.A.").
    """
    before, first = text[max(dot - 1, 0) : dot], text[dot + 1 : dot + 2]
    if first.isdecimal() or not (_is_in_words(before) and _is_in_words(first)):
        return False
    return _is_in_words(_after_letter(text, dot + 1)) or not first.isalpha()


def _after_letter(text: str, at: int) -> str:
    """Return the character after the letter at an index, if there is one.

    Its marks are part of it, and so is a letter that a virama joins to it.
    """
    is_joined = False
    for end in range(at + 1, len(text)):
        one = text[end]
        if unicodedata.category(one)[0] != "M" and not (is_joined and one.isalpha()):
            return one
        is_joined = unicodedata.combining(one) == _VIRAMA
    return ""


def _is_in_words(character: str) -> bool:
    return character != "" and unicodedata.category(character)[0] not in "PZ"


def _disarmed(word: str, folded: str) -> str:
    """Return a word that reads as before and links nowhere: the only link of a mail is ours."""
    if not _is_link_like(word, folded):
        return word
    return _DOT.sub("[.]", folded.replace("://", "[:]//").replace("@", "[at]"))
