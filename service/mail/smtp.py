"""Mail through an SMTP server: one connection a message.

All of it is under one deadline but the answer, for which a server that has the whole message may
take minutes: it filters it, or passes it on. To give up by then would deliver it again each time.
"""

import asyncio
import ssl
from contextlib import suppress
from email.message import EmailMessage
from typing import Final, Literal

from aiosmtplib import (
    SMTP,
    SMTPDataError,
    SMTPException,
    SMTPNotSupported,
    SMTPRecipientsRefused,
    SMTPResponse,
    SMTPServerDisconnected,
    SMTPStatus,
)
from aiosmtplib.protocol import PERIOD_REGEX, normalize_message_line_endings
from aiosmtplib.typing import Default

from service.mail.address import SmtpAddress, parse_mail_url
from service.mail.port import (
    ANSWER_SECONDS,
    LateAnswer,
    MailRefused,
    MailUnanswered,
    MailUnavailable,
)

DEADLINE_SECONDS: Final = 10.0
"""For one message: look-up, connection, TLS, sign-in, hand-over. Until then `send` waits for the
answer, too."""

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
        answer_seconds: float = ANSWER_SECONDS,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """`tls_context` None: the system's authorities. Raises ValueError for another URL."""
        address = parse_mail_url(url)
        if not isinstance(address, SmtpAddress):
            raise ValueError("expected smtp:// or smtps://")  # noqa: TRY004 - a value of its type
        self._address = address
        self._deadline_seconds = deadline_seconds
        self._answer_seconds = answer_seconds
        self._tls_context = tls_context

    async def send(self, message: EmailMessage) -> None:
        """Hand over one message; raises MailRefused, MailUnanswered and MailUnavailable."""
        client = self._client(message)
        # A task, because what comes while nobody reads is dropped: it reads until the answer.
        conversation = asyncio.create_task(self._conversation(client, message))
        try:
            await asyncio.wait([conversation], timeout=self._deadline_seconds + _QUIT_SECONDS)
        except asyncio.CancelledError:
            conversation.cancel()
            raise
        if client.has_sent and not conversation.done():
            late = LateAnswer(message["Message-ID"], conversation)
            raise MailUnanswered(TimeoutError.__name__, late)
        await conversation

    async def _conversation(self, client: "_Client", message: EmailMessage) -> None:
        fault = await self._attempt(client, message)
        if fault is not None:
            # Outside every except block: a chained error of the library would carry the server's
            # words, and with them the recipient's address, into logs.
            raise fault

    async def _attempt(
        self, client: "_Client", message: EmailMessage
    ) -> MailRefused | MailUnavailable | None:
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await client.connect()
                await client.send_message(message)
            async with asyncio.timeout(self._answer_seconds):
                await client.answer()
        except (SMTPException, OSError) as error:  # a TimeoutError is an OSError
            fault = _fault(error)
            if client.has_sent and not isinstance(error, SMTPDataError):
                return MailUnanswered(str(fault))
            return fault
        else:
            await _quit(client)
            return None
        finally:
            client.close()

    def _client(self, message: EmailMessage) -> "_Client":
        address = self._address
        return _Client(
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


class _Client(SMTP):
    """Reads the answer to a message apart from sending it."""

    has_sent = False
    """Whether the server may have all of a message."""

    async def data(
        self,
        message: str | bytes,
        /,
        *,
        timeout: float | Literal[Default.token] | None = Default.token,  # noqa: ASYNC109 - theirs
    ) -> SMTPResponse:
        """Send a message with its final dot; return what the server said before it."""
        start = await self.execute_command(b"DATA", timeout=timeout)
        if start.code != SMTPStatus.start_input or self.protocol is None:
            raise SMTPDataError(start.code, start.message)
        raw = message.encode("ascii") if isinstance(message, str) else message
        lines = PERIOD_REGEX.sub(b"..", normalize_message_line_endings(raw))
        self.protocol.write(lines + b".\r\n")
        self.has_sent = True
        return start

    async def answer(self) -> None:
        """Wait until the server takes the message; raises SMTPDataError where it does not."""
        if self.protocol is None:
            raise SMTPServerDisconnected("Connection lost")
        response = await self.protocol.read_response()
        if response.code != SMTPStatus.completed:
            raise SMTPDataError(response.code, response.message)


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
