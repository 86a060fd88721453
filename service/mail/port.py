"""The port of mail: what sends a message, and how sending fails."""

from email.message import EmailMessage
from typing import Protocol


class MailError(Exception):
    """A message was not handed over. Its text never holds an address or a server's words.

    Servers quote recipients in their replies, and errors end up in logs.
    """


class MailRefused(MailError):
    """Refused for good (a 5xx reply for the recipient or the message): do not retry."""


class MailUnavailable(MailError):
    """Not now: no connection, a deadline, a 4xx reply, our own credentials: retry later.

    Whether the server took the message before the connection was lost is unknown; its stable
    Message-ID lets the receiving side drop the second copy. The text is logged: the type of the
    fault, and the server's code.
    """


class MailTransport(Protocol):
    """Hands messages over at least once. One contract suite tests every implementation.

    Nothing is held between messages, so there is nothing to close.
    """

    async def send(self, message: EmailMessage) -> None:
        """Hand over one message with From, one To and Message-ID.

        Raises:
            MailRefused: it can never be delivered.
            MailUnavailable: it may be later.

        """
        ...
