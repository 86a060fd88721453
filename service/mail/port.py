"""The port of mail: what sends a message, and how sending fails.

No failure's text holds an address or a server's words: servers quote recipients in their replies,
and errors end up in logs.
"""

from collections.abc import Awaitable
from email.message import EmailMessage
from typing import Final, NamedTuple, Protocol

ANSWER_SECONDS: Final = 300.0
"""How long a server that has all of a message may take to answer, as filters behind it may need.
RFC 5321 4.5.3.2.6 asks clients to wait for ten minutes, which is how long a sign-in link lives."""


class MailRefused(Exception):
    """Refused for good (a 5xx reply for the recipient or the message): do not retry."""


class MailUnavailable(Exception):
    """Not now: no connection, a deadline, a 4xx reply, our own credentials: retry later.

    The text is logged: the type of the fault, and the server's code.
    """


class LateAnswer(NamedTuple):
    """The answer to a message, by its Message-ID, that is still to come.

    `answer` ends with it, within ANSWER_SECONDS, and raises as `MailTransport.send` does.
    """

    message_id: str
    answer: Awaitable[None]


class MailUnanswered(MailUnavailable):
    """The server has all of the message, and has not said whether it takes it.

    `late` has to be awaited; None where no answer can come any more. Whoever sends the message
    again may send a second copy; its stable Message-ID lets the receiving side drop that.
    """

    def __init__(self, text: str, late: LateAnswer | None = None) -> None:
        """Keep the answer to come."""
        super().__init__(text)
        self.late = late


class MailTransport(Protocol):
    """Hands messages over at least once. One contract suite tests every implementation.

    Nothing is held between messages but answers to come, so there is nothing to close.
    """

    async def send(self, message: EmailMessage) -> None:
        """Hand over one message with From, one To and Message-ID.

        Raises:
            MailRefused: it can never be delivered.
            MailUnanswered: it may have been delivered.
            MailUnavailable: it may be later.

        """
        ...
