"""The port of mail: what sends a message, and how sending fails.

No failure's text holds an address or a server's words: servers quote recipients in their replies,
and errors end up in logs.
"""

from email.message import EmailMessage
from typing import Protocol


class MailRefused(Exception):
    """Refused for good (a 5xx reply for the recipient or the message): do not retry."""


class MailUnavailable(Exception):
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
