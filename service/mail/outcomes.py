"""What follows from an attempt to hand a mail over: for mails of every kind.

A server that has all of a mail may take minutes to answer, and no other mail waits for that. Until
then the mail is settled as if the answer never came: where it does not, or where the process ends,
nothing has to be done. An attempt whose effect is unknown may have delivered the mail, so it counts
for several, and few follow it (UNKNOWN_COUNTS).
"""

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

import structlog

from service.core.retries import Retries
from service.ledger.database import LedgerError
from service.mail.port import (
    ANSWER_SECONDS,
    LateAnswer,
    MailRefused,
    MailUnanswered,
    MailUnavailable,
)

SEND_SECONDS_MAX: Final = 20.0
"""For the transaction of an attempt: the transport's deadline and QUIT, a read and a write of the
archive, time to spare."""
ANSWERS_MAX: Final = 30
"""Late answers that a loop waits for at a time, on as many connections: for one more, it gives up
the oldest. Each has taken the loop ten seconds before it is late, so that no more than these can be
within ANSWER_SECONDS."""

log = structlog.get_logger()


class MailOutcome(NamedTuple):
    """A mail's state after an attempt, how many it has had, and how long until the next one.

    `late` is the answer to come, if one may, which `LateAnswers` has to follow.
    """

    state: str
    attempts: int
    wait: timedelta
    late: LateAnswer | None = None


def outcome(state: str, attempt: int, retries: Retries) -> MailOutcome:
    """Return the outcome of an attempt, counted from 1, of which the state is known."""
    if state == "waiting" and attempt >= retries.attempts_max:
        state = "failed"
    return MailOutcome(state, attempt, retries.wait_after(attempt))


async def outcome_of(
    name: str, attempt: int, retries: Retries, sending: Awaitable[str | None]
) -> MailOutcome:
    """Return what becomes of a mail by `sending` it, which returns a state other than `sent`."""
    try:
        state = await sending or "sent"
    except MailRefused:
        log.warning("mail refused", message_id=name)
        state = "failed"
    except MailUnanswered as error:
        log.warning("mail unanswered", message_id=name, error_type=str(error))
        attempts, wait = retries.after_unknown(attempt)
        if error.late is not None:
            wait += timedelta(seconds=ANSWER_SECONDS)
        return MailOutcome("waiting", attempts, wait, error.late)
    except MailUnavailable as error:
        log.warning("mail waits", message_id=name, error_type=str(error))
        state = "waiting"
    return outcome(state, attempt, retries)


@dataclass(frozen=True, slots=True)
class LateAnswers:
    """Settles mails when their answers come."""

    _tasks: dict[asyncio.Task[None], None] = field(
        default_factory=dict[asyncio.Task[None], None], init=False
    )

    @property
    def count(self) -> int:
        """How many answers are waited for."""
        return len(self._tasks)

    def follow(self, settling: Coroutine[object, object, None]) -> None:
        """Run what awaits an answer and settles its mail."""
        if self.count >= ANSWERS_MAX:
            next(iter(self._tasks)).cancel()
        task = asyncio.create_task(settling)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Wait for no answer any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LedgerError):
            log.warning("mail not settled", error_type=type(error.__cause__ or error).__name__)
        elif error is not None:
            log.error("mail not settled", exc_info=error)
