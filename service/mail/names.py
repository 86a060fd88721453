"""Names that others chose, in mails: nothing in one is an address, a link or a number to call."""

import re
import unicodedata
from typing import Final

from service.core.unseen import blanked

NAME_CHARACTERS_MAX: Final = 120
"""Of a name as it is shown; longer ones are cut with an ellipsis."""

# What mail programs turn into links: "https://evil.example", "evil.example", "who@evil.example",
# "192.0.2.1". Browsers read the ideographic full stop as a dot, too.
_LINK_LIKE: Final = re.compile(
    r":/|www\.|[^\s@]@[^\s@]|[^\W_][.。][^\W\d_]{2,}|\d\.\d{1,3}\.\d{1,3}\.\d", re.IGNORECASE
)
_DOT: Final = re.compile(
    "[.\N{ONE DOT LEADER}\N{FULLWIDTH FULL STOP}。\N{HALFWIDTH IDEOGRAPHIC FULL STOP}]"
)
# Seven digits or more, whatever signs stand between them: "+44 (20) 7946-0000".
_NUMBER_LIKE: Final = re.compile(r"[+(]{0,2}\d(?:[\W_]{0,3}\d){6,}")
_NUMBER_SHOWN: Final = "[number]"


def header_name(name: str) -> str:
    """Return a name for a header; empty where it looks like an address, a domain or a number."""
    folded = _folded(name)
    return "" if _LINK_LIKE.search(folded) or _NUMBER_LIKE.search(folded) else _shown(name, folded)


def _folded(text: str) -> str:
    """Return a text as people read it: wide letters as plain ones, without what is invisible."""
    seen = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", _beginning(seen))


def _beginning(text: str) -> str:
    """Return what is shown of a text at most, and a character more if there is more."""
    return " ".join(text.split())[: NAME_CHARACTERS_MAX + 1]


def shown(text: str) -> str:
    """Return a name for the text of a mail: it reads as before and links nowhere."""
    return _shown(text, _folded(text))  # digits in circles and the like are read as digits


def _shown(text: str, folded: str) -> str:
    seen = folded if _NUMBER_LIKE.search(folded) else _beginning(blanked(text))
    numberless = _NUMBER_LIKE.sub(_NUMBER_SHOWN, seen)
    words, whole = numberless.split(), _beginning(text)
    # What is costly to fold is a single word: NFKC makes eighteen letters of some.
    line = " ".join(_disarmed(one, folded if one == whole else _folded(one)) for one in words)
    return line if len(line) <= NAME_CHARACTERS_MAX else f"{line[: NAME_CHARACTERS_MAX - 1]}…"


def _disarmed(word: str, folded: str) -> str:
    """Return a word that reads as before and links nowhere: the only link of a mail is ours."""
    if not _LINK_LIKE.search(folded):
        return word
    return _DOT.sub("[.]", word.replace("://", "[:]//").replace("@", "[at]"))
