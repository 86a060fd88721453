"""What a partner enters when it applies, and when it adds people."""

from typing import Annotated, Final

from msgspec import Meta

from service.core.unseen import name_fault, unseen_fault
from service.http.scalars import Checked, EmailAddress, Name

WORDS_CHARACTERS_MAX: Final = 1_000
"""Of a text of several lines on a page. A form of it fits into what pages take of one, in any
script that has three bytes a character."""

KEY_NAME_CHARACTERS_MAX: Final = 60
"""A list of 75 keys with their names fits into a page."""

Words = Annotated[
    str, Meta(min_length=1, max_length=WORDS_CHARACTERS_MAX, extra={"check": unseen_fault})
]


WEBSITE: Final = r"(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
"""A host name in ASCII: no two of them look the same."""

Website = Annotated[str, Meta(max_length=253, pattern=f"^({WEBSITE})?$")]
"""The host of a partner's website, such as `www.example.com`; empty for none."""


class PartnerApplication(Checked, frozen=True, kw_only=True):
    """A partner's name and the address of its contact."""

    name: Name
    email: EmailAddress


class ConsoleApplication(Checked, frozen=True, kw_only=True):
    """The console's application form; the contact's address is that of the signed-in person."""

    company: Name
    contact_name: Name
    website: Website
    use: Words


class PartnerApproval(Checked, frozen=True, kw_only=True):
    """What the team confirms when it approves a partner."""

    website: Website


class KeyName(Checked, frozen=True, kw_only=True):
    """What a partner's people call a key; empty for one without a name."""

    name: Annotated[str, Meta(max_length=KEY_NAME_CHARACTERS_MAX, extra={"check": name_fault})]


class NewMember(Checked, frozen=True, kw_only=True):
    """The address of a person who joins a partner's team."""

    email: EmailAddress
