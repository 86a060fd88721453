"""Which transport a mail URL names."""

from pathlib import Path

from service.mail.address import parse_mail_url
from service.mail.directory import DirectoryTransport
from service.mail.port import MailTransport
from service.mail.smtp import SmtpTransport


def mail_transport(url: str) -> MailTransport:
    """Return the transport of a `smtp://`, `smtps://` or `file:///directory` URL.

    Raises:
        ValueError: another URL; the text does not quote it.

    """
    address = parse_mail_url(url)
    return DirectoryTransport(address) if isinstance(address, Path) else SmtpTransport(url)
