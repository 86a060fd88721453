"""Letters: what a mail says, from which its plain text and its HTML are made alike.

No tracking, no images, no style: a mail program shows the HTML in its own type and theme.
"""

import re
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr
from html import escape
from typing import Final, NamedTuple

from service.mail.port import MailRefused

_LINE_COLUMNS: Final = 76
_TOKEN_CHARACTERS_MAX: Final = 900  # RFC 5322 2.1.1: a line has at most 998 bytes

_LINK: Final = re.compile(r"https?://[!-~]+")
# RFC 5322 3.2.3 dot-atom, RFC 6531 3.3 beyond ASCII. Quoted local parts are not taken.
_LOCAL_PART: Final = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+")
_DOMAIN: Final = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_MESSAGE_ID: Final = re.compile(r"[!-;=?A-~]+@[!-;=?A-~]+")  # ASCII without white space, < @ >

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>{title}</title></head>
<body>
{body}
</body>
</html>
"""


class LinkLine(NamedTuple):
    """A link of ours, on a line of its own; `label` says in HTML where it leads."""

    url: str
    label: str


class Letter(NamedTuple):
    """A mail's subject and its paragraphs."""

    subject: str
    paragraphs: Sequence[str | LinkLine]

    @property
    def text(self) -> str:
        """The plain text: wrapped, except for the links, which must stay whole."""
        return "\n\n".join(map(_plain, self.paragraphs)) + "\n"

    @property
    def body(self) -> str:
        """The HTML of the paragraphs, whose lines are as short as those of the text."""
        return "\n".join(map(_html, self.paragraphs))

    def message(
        self, *, to: str, sender: str, message_id: str, date: datetime, name: str = ""
    ) -> EmailMessage:
        """Return the mail to an address; `name` is its person's.

        `date` is aware; `message_id` is `local@domain`, the same for the same mail, since it may be
        sent more than once.

        Raises:
            MailRefused: `to` is not an email address; it is never corrected, because a corrected
                address may be somebody else's.
            ValueError: a link, `sender` or `message_id` is malformed: a bug.

        """
        message = EmailMessage(policy=SMTP)
        message["From"] = sender  # the policy refuses line ends in it
        message["To"] = recipient(to, name)
        message["Subject"] = self.subject
        message["Date"] = date.astimezone(UTC)
        message["Message-ID"] = f"<{_checked(message_id, _MESSAGE_ID)}>"
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office replies
        page = _PAGE.format(title=escape(self.subject), body=self.body)
        # Left unencoded: quoted-printable would break the link where people look into .eml files.
        message.set_content(self.text, cte=_encoding(self.text))
        message.add_alternative(page, subtype="html", cte=_encoding(page))
        return message


def message_id(name: str, sender: str) -> str:
    """Return a mail's Message-ID at the sender's domain, the same whenever it is made."""
    return f"{name}@{parseaddr(sender)[1].rpartition('@')[2]}"


def until(expires_at: datetime) -> str:
    """Return a moment as mails name it, in UTC."""
    at = expires_at.astimezone(UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def _plain(paragraph: str | LinkLine) -> str:
    if isinstance(paragraph, LinkLine):
        return _checked(paragraph.url, _LINK)
    return _filled(paragraph)


def _html(paragraph: str | LinkLine) -> str:
    if isinstance(paragraph, LinkLine):
        url = escape(_checked(paragraph.url, _LINK))
        return f'<p><a href="{url}">{escape(paragraph.label)}</a></p>'
    return f"<p>{escape(_filled(paragraph), quote=False)}</p>"


def _filled(text: str) -> str:
    return textwrap.fill(text, _LINE_COLUMNS, break_on_hyphens=False)


def _encoding(text: str) -> str:
    return "7bit" if text.isascii() else "8bit"


def recipient(to: str, name: str) -> Address:
    """Return the one address that a mail goes to; raises MailRefused for what is none."""
    local_part, _, domain = to.rpartition("@")
    try:
        # The domain travels in its ASCII form; a local part beyond ASCII needs SMTPUTF8.
        ascii_domain = domain.encode("idna").decode("ascii")
        if _LOCAL_PART.fullmatch(local_part) and _DOMAIN.fullmatch(ascii_domain):
            return Address(display_name=name, username=local_part, domain=ascii_domain)
    except UnicodeError:
        pass
    # Outside the except block: a chained error would quote the address.
    raise MailRefused("the recipient's email address is malformed")


def _checked(text: str, shape: re.Pattern[str]) -> str:
    if not shape.fullmatch(text) or len(text) > _TOKEN_CHARACTERS_MAX:
        raise ValueError(f"expected {shape.pattern}, at most {_TOKEN_CHARACTERS_MAX} characters")
    return text
