"""What a partner enters when it applies, and when it adds people."""

import re
from typing import Annotated, Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Meta

from service.core.invisible_characters import name_fault, unseen_fault
from service.http.scalars import Checked, EmailAddress, Name

WORDS_CHARACTERS_MAX: Final = 1_000
"""Of a text of several lines on a page. A form of it fits into what pages take of one, in any
script that has three bytes a character."""

KEY_NAME_CHARACTERS_MAX: Final = 60
"""A list of 75 keys with their names fits into a page."""

NOTE_CHARACTERS_MAX: Final = 500
"""Of the team's note. A page has it twice where two people wrote one, beside a hundred members."""

COMPANY_NUMBER_CHARACTERS_MAX: Final = 60
"""Of a number in any country's register."""

Words = Annotated[
    str, Meta(min_length=1, max_length=WORDS_CHARACTERS_MAX, extra={"check": unseen_fault})
]


WEBSITE: Final = r"(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
"""A host name in ASCII: no two of them look the same."""

_HOST: Final = re.compile(WEBSITE)


def website_of(text: str) -> str:
    """Return the host of what a person enters as a website: many copy its whole address."""
    return text.lower().removeprefix("http://").removeprefix("https://").removesuffix("/")


def website_fault(text: str) -> str | None:
    """Return what is wrong with the host of a website, or None."""
    if not text or _HOST.fullmatch(text):
        return None
    return "write it as www.example.com, and an international domain in its xn-- form"


Website = Annotated[str, Meta(max_length=253, extra={"check": website_fault})]
"""The host of a partner's website, such as `www.example.com`; empty for none."""


RETURN_URL_CHARACTERS_MAX: Final = 500
ENTITY_PARAMETER: Final = "entity_id"
"""Under which a customer's return has the id of their entity."""

_RETURN_URL: Final = re.compile(rf"https://{WEBSITE}(/[A-Za-z0-9._~!$&()*+,;=:@%/?-]*)?")
"""No user, port or fragment, and nothing that would have to be quoted."""


def return_url_fault(text: str) -> str | None:
    """Return what is wrong with the URL that customers return to, or None."""
    if not text:
        return None
    if not _RETURN_URL.fullmatch(text):
        return "not an address such as https://www.example.com/connected"
    if ENTITY_PARAMETER in parse_qs(urlsplit(text).query, keep_blank_values=True):
        return f"has {ENTITY_PARAMETER} already, which is added to it"
    return None


def leads_to(return_url: str, website: str | None) -> bool:
    """Return whether a URL's host is a website, or below it; any host is where there is none.

    A website that begins with `www.` is also the one without: people write either, and mean both.
    """
    host, verified = urlsplit(return_url).hostname or "", (website or "").lower()
    if not verified or host == verified or host.endswith(f".{verified}"):
        return True
    return "." in host and verified == f"www.{host}"


class PartnerApplication(Checked, frozen=True, kw_only=True):
    """A partner's name and the address of its contact."""

    name: Name
    email: EmailAddress


class ConsoleApplication(Checked, frozen=True, kw_only=True):
    """The console's application form; the contact's address is that of the signed-in person."""

    company: Name
    contact_name: Name
    website: Website
    company_number: Annotated[
        str, Meta(max_length=COMPANY_NUMBER_CHARACTERS_MAX, extra={"check": name_fault})
    ]
    use: Words


class PartnerNote(Checked, frozen=True, kw_only=True):
    """The team's note about a partner; empty for none."""

    note: Annotated[str, Meta(max_length=NOTE_CHARACTERS_MAX, extra={"check": unseen_fault})]


class PartnerApproval(Checked, frozen=True, kw_only=True):
    """What the team confirms of a partner that it approves, or has approved."""

    website: Website


class KeyName(Checked, frozen=True, kw_only=True):
    """What a partner's people call a key; empty for one without a name."""

    name: Annotated[str, Meta(max_length=KEY_NAME_CHARACTERS_MAX, extra={"check": name_fault})]


class ReturnUrl(Checked, frozen=True, kw_only=True):
    """Where a partner's customers may take their entity's id; empty for nowhere."""

    return_url: Annotated[
        str, Meta(max_length=RETURN_URL_CHARACTERS_MAX, extra={"check": return_url_fault})
    ]


class NewMember(Checked, frozen=True, kw_only=True):
    """The address of a person who joins a partner's team."""

    email: EmailAddress
