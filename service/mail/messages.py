"""The messages we send: plain text, no tracking, safe whatever names partners choose."""

import re
import textwrap
import unicodedata
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr
from typing import Final

from service.core.unseen import blanked
from service.mail.port import MailRefused

NAME_CHARACTERS_MAX: Final = 120
"""Of a name as it is shown; longer ones are cut with an ellipsis."""

_LINE_COLUMNS: Final = 76
_TOKEN_CHARACTERS_MAX: Final = 900  # RFC 5322 2.1.1: a line has at most 998 bytes

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

_LINK: Final = re.compile(r"https?://[!-~]+")
# RFC 5322 3.2.3 dot-atom, RFC 6531 3.3 beyond ASCII. Quoted local parts are not taken.
_LOCAL_PART: Final = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+")
_DOMAIN: Final = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_MESSAGE_ID: Final = re.compile(r"[!-;=?A-~]+@[!-;=?A-~]+")  # ASCII without white space, < @ >

_YOUR_BUSINESS: Final = "your business"

_TEXT: Final = """\
Hello{greeting},

{partner} has referred {company} to us. To finish setting up {company}, open this link:

{link}

The link works once, until {until}. Opening it does not use it up: nothing happens before you confirm on the page.

If you did not expect this message, you can ignore it. Please do not share the link.

This message was sent automatically. Replies are not read.
"""  # noqa: E501 - paragraphs, wrapped once the names are in them
_SIGN_IN: Final = """\
Hello,

To sign in, open this link:

{link}

It works once, until {until}. Please do not share it. Open it in the browser in which you asked for it; any other one asks for the code that was shown there. Opening it does not use it up: nothing happens before you confirm on the page.

If you did not ask to sign in, you can ignore this message.
"""  # noqa: E501 - as above


def sign_in_mail(
    *, to: str, link: str, expires_at: datetime, sender: str, message_id: str, date: datetime
) -> EmailMessage:
    """Return the mail that signs a person in; raises as `magic_link_mail` does."""
    text = _SIGN_IN.format(link=_checked(link, _LINK), until=_until(expires_at))
    return _message(
        to=_recipient(to, ""),
        subject="Your link to sign in",
        text=_paragraphs(text, link),
        sender=sender,
        message_id=message_id,
        date=date,
    )


def magic_link_mail(
    *,
    to: str,
    user_name: str | None,
    company_name: str,
    partner_name: str,
    link: str,
    expires_at: datetime,
    sender: str,
    message_id: str,
    date: datetime,
) -> EmailMessage:
    """Return the mail that asks a referred business to finish its onboarding.

    A name that looks like an address, a domain or a phone number is in no header and no greeting:
    there it would be the sender's own word. In the text it links nowhere.

    `expires_at` and `date` are aware; `message_id` is `local@domain`, the same for the same
    onboarding, since the mail may be sent more than once.

    Raises:
        MailRefused: `to` is not an email address; it is never corrected, because a corrected
            address may be somebody else's.
        ValueError: `link`, `sender` or `message_id` is malformed: a bug.

    """
    company, partner = _shown(company_name), _shown(partner_name)
    name = "" if _is_contact(user_name or "") else _shown(user_name or "")
    subject = _YOUR_BUSINESS if _is_contact(company_name) else company
    text = _TEXT.format(
        greeting=f" {name}" if name else "",
        company=company,
        partner=partner,
        link=_checked(link, _LINK),
        until=_until(expires_at),
    )
    return _message(
        to=_recipient(to, name),
        subject=f"Finish setting up {subject}",
        text=_paragraphs(text, link),
        sender=sender,
        message_id=message_id,
        date=date,
    )


def message_id(name: str, sender: str) -> str:
    """Return a mail's Message-ID at the sender's domain, the same whenever it is made."""
    return f"{name}@{parseaddr(sender)[1].rpartition('@')[2]}"


def _message(
    *, to: Address, subject: str, text: str, sender: str, message_id: str, date: datetime
) -> EmailMessage:
    message = EmailMessage(policy=SMTP)
    message["From"] = sender  # the policy refuses line ends in it
    message["To"] = to
    message["Subject"] = subject
    message["Date"] = date.astimezone(UTC)
    message["Message-ID"] = f"<{_checked(message_id, _MESSAGE_ID)}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office replies
    # Left unencoded: quoted-printable would break the link where people look into .eml files.
    message.set_content(text, cte="7bit" if text.isascii() else "8bit")
    return message


def _until(expires_at: datetime) -> str:
    until = expires_at.astimezone(UTC)
    return f"{until.day} {until:%B %Y, %H:%M} UTC"


def _paragraphs(text: str, link: str) -> str:
    """Wrap the paragraphs, except for the link, which must stay whole."""
    paragraphs = text.removesuffix("\n").split("\n\n")
    wrapped = (
        part if part == link else textwrap.fill(part, _LINE_COLUMNS, break_on_hyphens=False)
        for part in paragraphs
    )
    return "\n\n".join(wrapped) + "\n"


def _is_contact(name: str) -> bool:
    """Return whether a name looks like an address, a domain or a phone number."""
    folded = _folded(name)
    return bool(_LINK_LIKE.search(folded) or _NUMBER_LIKE.search(folded))


def _folded(text: str) -> str:
    """Return a text as people read it: wide letters as plain ones, without what is invisible."""
    seen = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", _beginning(seen))


def _beginning(text: str) -> str:
    """Return what is shown of a text at most, and a character more if there is more."""
    return " ".join(text.split())[: NAME_CHARACTERS_MAX + 1]


def _shown(text: str) -> str:
    folded = _folded(text)  # digits in circles and the like are read as digits
    seen = folded if _NUMBER_LIKE.search(folded) else _beginning(blanked(text))
    numberless = _NUMBER_LIKE.sub(_NUMBER_SHOWN, seen)
    line = " ".join(map(_disarmed, numberless.split()))
    return line if len(line) <= NAME_CHARACTERS_MAX else f"{line[: NAME_CHARACTERS_MAX - 1]}…"


def _disarmed(word: str) -> str:
    """Return a word that reads as before and links nowhere: the only link of a mail is ours."""
    if not _LINK_LIKE.search(_folded(word)):
        return word
    return _DOT.sub("[.]", word.replace("://", "[:]//").replace("@", "[at]"))


def _recipient(to: str, name: str) -> Address:
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
