"""The mails with a link that is a credential: to sign in, and to finish an onboarding."""

from datetime import datetime

from service.mail.letters import Letter, LinkLine, until
from service.mail.names import header_name, shown

YOUR_BUSINESS = "your business"
AUTOMATIC = "This message was sent automatically. Replies are not read."


def sign_in_letter(*, link: str, expires_at: datetime) -> Letter:
    """Return the letter that signs a person in."""
    return Letter(
        "Your link to sign in",
        (
            "Hello,",
            "To sign in, open this link:",
            LinkLine(link, "Sign in"),
            (
                f"It works once, until {until(expires_at)}. Please do not share it. Open it in the"
                " browser in which you asked for it; any other browser asks for the code shown"
                " there. Opening it does not use it up: nothing happens until you confirm on the"
                " page."
            ),
            "If you did not ask to sign in, you can ignore this message.",
        ),
    )


def magic_link_letter(
    *,
    user_name: str | None,
    company_name: str,
    partner_name: str,
    link: str,
    expires_at: datetime,
) -> Letter:
    """Return the letter that asks a referred business to finish its onboarding.

    A name that looks like an address, a domain or a phone number is in no header and no greeting:
    there it would be the sender's own word. In the text it links nowhere.
    """
    company, partner = shown(company_name) or YOUR_BUSINESS, shown(partner_name)
    name = greeted(user_name)
    return Letter(
        f"Finish setting up {subject_name(company_name, YOUR_BUSINESS)}",
        (
            f"Hello {name}," if name else "Hello,",
            (
                f"{partner} has referred {company} to us. To finish setting up {company}, open this"
                " link:"
            ),
            LinkLine(link, "Finish setting up your business"),
            (
                f"The link works once, until {until(expires_at)}. Opening it does not use it up:"
                " nothing happens until you confirm on the page."
            ),
            "If you did not expect this message, you can ignore it. Please do not share the link.",
            AUTOMATIC,
        ),
    )


def greeted(user_name: str | None) -> str:
    """Return a person's name for the greeting and the header; empty where it is none."""
    return header_name(user_name or "")


def subject_name(name: str, instead: str) -> str:
    """Return a name for a subject, and `instead` where it looks like an address or a number."""
    return header_name(name) or instead
