"""What a partner enters when it applies, and when it adds people."""

import unicodedata
from typing import Annotated, Final

from msgspec import Meta

from service.http.scalars import LIMITS, Checked, EmailAddress, RequiredText

_UNSEEN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of controls, lone surrogates, line and paragraph separators."""
_BIDI: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that reorder text, with which a name could rewrite the words around it."""


def is_unseen(character: str) -> bool:
    """Return whether a character does not belong in a name on one line."""
    return character in _BIDI or unicodedata.category(character) in _UNSEEN


def name_fault(text: str) -> str | None:
    """Return why a string cannot be a name on one line, or None."""
    if any(map(is_unseen, text)):
        return "contains line breaks or other characters that cannot be seen"
    return None


Name = Annotated[str, Meta(min_length=1, max_length=LIMITS["text"], extra={"check": name_fault})]
"""Shown to customers on a line of its own."""

Use = Annotated[str, Meta(min_length=1, max_length=LIMITS["summary"])]


class PartnerApplication(Checked, frozen=True, kw_only=True):
    """A partner's name and the address of its contact."""

    name: RequiredText
    email: EmailAddress


class ConsoleApplication(Checked, frozen=True, kw_only=True):
    """The console's application form; the contact's address is that of the signed-in person."""

    company: Name
    contact_name: Name
    use: Use


class NewMember(Checked, frozen=True, kw_only=True):
    """The address of a person who joins a partner's team."""

    email: EmailAddress
