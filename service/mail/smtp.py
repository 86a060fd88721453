"""Mail through an SMTP server: one connection a message, all of it under one deadline."""

import asyncio
import ssl
from contextlib import suppress
from email.message import EmailMessage
from typing import Final

from aiosmtplib import (
    SMTP,
    SMTPDataError,
    SMTPException,
    SMTPNotSupported,
    SMTPRecipientsRefused,
)

from service.mail.address import SmtpAddress, parse_mail_url
from service.mail.port import MailRefused, MailUnavailable

DEADLINE_SECONDS: Final = 10.0
"""For one message: look-up, connection, TLS, sign-in, hand-over."""

_QUIT_SECONDS: Final = 1.0

# 5xx replies about the session, not about the message (RFC 5321 4.2.3, RFC 4954 6): command not
# implemented, bad sequence, sign-in or encryption required, our credentials refused. Giving a
# mail up for a fault of our own settings would lose it.
_ABOUT_THE_SESSION: Final = frozenset({502, 503, 530, 534, 535, 538})


class SmtpTransport:
    """The mail server of a `smtp://` or `smtps://` URL (see `parse_mail_url`)."""

    def __init__(
        self,
        url: str,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """`tls_context` None: the system's authorities. Raises ValueError for another URL."""
        address = parse_mail_url(url)
        if not isinstance(address, SmtpAddress):
            raise ValueError("expected smtp:// or smtps://")  # noqa: TRY004 - a value of its type
        self._address = address
        self._deadline_seconds = deadline_seconds
        self._tls_context = tls_context

    async def send(self, message: EmailMessage) -> None:
        """Hand over one message; raises MailRefused and MailUnavailable."""
        fault = await self._attempt(message)
        if fault is not None:
            # Outside every except block: a chained error of the library would carry the server's
            # words, and with them the recipient's address, into logs.
            raise fault

    async def _attempt(self, message: EmailMessage) -> MailRefused | MailUnavailable | None:
        client = self._client(message)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await client.connect()
                await client.send_message(message)
        except (SMTPException, OSError) as error:  # a TimeoutError is an OSError
            return _fault(error)
        else:
            await _quit(client)
            return None
        finally:
            client.close()

    def _client(self, message: EmailMessage) -> SMTP:
        address = self._address
        return SMTP(
            hostname=address.host,
            port=address.port,
            username=address.user,
            password=address.password,
            # Our own domain: the library would ask the resolver for this machine's name.
            local_hostname=message["From"].addresses[0].domain,
            timeout=self._deadline_seconds,
            use_tls=address.implicit_tls,
            # None: when the server offers it.
            start_tls=not address.implicit_tls and (address.starttls or None),
            tls_context=self._tls_context,
        )


async def _quit(client: SMTP) -> None:
    # The server has accepted the message: a failing QUIT must not send it again.
    with suppress(SMTPException, OSError):
        async with asyncio.timeout(_QUIT_SECONDS):
            await client.quit()


def _fault(error: SMTPException | OSError) -> MailRefused | MailUnavailable:
    match error:
        case SMTPRecipientsRefused():
            codes = [refused.code for refused in error.recipients]
            return _rejected("recipient", min(codes))
        case SMTPDataError():
            return _rejected("message", error.code)
        case SMTPNotSupported():
            return MailRefused("the server does not take non-ASCII addresses")
        case _:
            code = getattr(error, "code", None)
            answer = "" if code is None else f" ({code})"
            return MailUnavailable(f"{type(error).__name__}{answer}")


def _rejected(about: str, code: int) -> MailRefused | MailUnavailable:
    permanent = 500 <= code < 600 and code not in _ABOUT_THE_SESSION  # noqa: PLR2004 - 5xx
    kind = MailRefused if permanent else MailUnavailable
    return kind(f"the server answered {code} for the {about}")
