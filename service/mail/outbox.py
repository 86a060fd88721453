"""From the log to the mail server: a subscriber queues mail (`queueing.py`), a loop sends it.

At least once, under a Message-ID that stays the same (decision 14). The outbox refers to
events; the address and the link are read and made again when the mail is sent (decision 10).

An attempt is counted, with its wait, in a transaction of its own before anything leaves, so that a
sender that is cut off, wherever, cannot send again at once or for ever:
- before the count is committed: nothing has happened;
- after the count, before the server has the mail: it is late by the wait;
- after the server has it, before the note: it is sent again after the wait, which grows, and at
  most ATTEMPTS_MAX times in all, under the same Message-ID;
- while the server's answer is late: that was recorded, and the mail is sent again after a longer
  wait, and at most twice (service/mail/outcomes.py);
- after the note, before the state is committed: the next attempt finds the note, and sends nothing.

What several people are told is `shared` when it is due: each gets a mail of their own, which is
sent, counted and given up by itself.

A mailbox gets few mails a day (service/mail/recipients.py). Those beyond are `withheld`: they stay
in the outbox, and the console, the back office and the metrics show them.
"""

import asyncio
from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from service.archive.port import ArchiveUnavailable
from service.core.clock import Clock
from service.core.retries import ATTEMPTS_MAX, FOR_A_DAY
from service.ledger.database import Row, is_infrastructure_error
from service.ledger.effects import BeingErased
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.mail.composing import Compose, SharedMail
from service.mail.outcomes import SEND_SECONDS_MAX, LateAnswers, MailOutcome, outcome, outcome_of
from service.mail.port import LateAnswer, MailTransport
from service.mail.queueing import SHARE
from service.mail.recipients import FORGET_ROWS_MAX, FORGET_SECONDS, admit, forget_old
from service.mail.sent import SentMail

NOTES_SECONDS: Final = 60.0
"""How long a mail waits while the archive cannot say whether it was sent before a restore."""
TURNS_KEPT: Final = 100
"""Streams that had a turn lately, as many as a process remembers."""
ENDS_MAX: Final = 500
"""Of what is due, how much a turn considers from either end: what is between waits for these."""
HELD_MAX: Final = 20
"""Rows that other processes may hold when one takes the next."""

_SQL = queries("service.mail")

log = structlog.get_logger()


@dataclass(slots=True)
class Outbox:
    """Sends what is due of a ledger, one mail a transaction; any number of processes may.

    Streams take turns, or the mails of one, such as a partner's account, would hold up all others'.
    """

    ledger: Ledger
    compose: Compose
    transport: MailTransport
    _: KW_ONLY
    clock: Clock
    sent: SentMail
    answers: LateAnswers = field(default_factory=LateAnswers, init=False)
    _had_turns: deque[UUID] = field(
        default_factory=lambda: deque[UUID](maxlen=TURNS_KEPT), init=False
    )
    _forgets_at: float = field(default=0.0, init=False)

    async def step(self) -> int:
        """Send one mail that is due; return how many were attempted."""
        now = self.clock()
        await self._forget(now)
        if not await self.ledger.database.background.fetchrow(_SQL.outbox_due, now):
            return 0
        async with self.ledger.transaction(background=SEND_SECONDS_MAX) as transaction:
            bounds = (ENDS_MAX, HELD_MAX)
            row = await transaction.fetchrow(_SQL.outbox_take, now, list(self._had_turns), *bounds)
            if row is None:
                return 0
            self._has_turn(row["stream_id"])
            # Whatever somebody wrote there: a number that the column or the wait has no room for
            # would stop all mail.
            attempt = min(max(row["attempts"], 0), ATTEMPTS_MAX) + 1
            later = timedelta(seconds=SEND_SECONDS_MAX) + FOR_A_DAY.wait_after(attempt)
            counted = MailOutcome("waiting", attempt, later)
            await transaction.fetch(
                _SQL.outbox_settle, *self._settled(row, row["attempts"], counted)
            )
        done = None
        try:
            async with self.ledger.transaction(background=SEND_SECONDS_MAX) as transaction:
                held = await transaction.fetchrow(_SQL.outbox_hold, row["message_id"], attempt)
                if held is not None:  # neither erased, settled nor taken up again meanwhile
                    done = await self._attempt(transaction, row, attempt, now)
                    await transaction.fetch(_SQL.outbox_settle, *self._settled(row, attempt, done))
        finally:
            if done is not None and done.late is not None:
                self.answers.follow(self._answered(row, attempt, done.attempts, done.late))
        return 1

    async def _answered(self, row: Row, attempt: int, counted: int, late: LateAnswer) -> None:
        """Settle a mail by its late answer."""

        async def noted() -> None:
            await late.answer
            await self._note(row, late.message_id)

        done = await outcome_of(row["message_id"], attempt, FOR_A_DAY, noted())
        settled = self._settled(row, counted, done)
        await self.ledger.database.background.fetch(_SQL.outbox_settle, *settled)

    def _settled(self, row: Row, counted: int, done: MailOutcome) -> tuple[object, ...]:
        """Return the arguments that settle a mail after so many attempts."""
        if done.state == "failed":
            log.error("mail given up", message_id=row["message_id"], attempts=done.attempts)
        due = self.clock() + done.wait
        return row["message_id"], counted, done.state, done.attempts, due

    async def _forget(self, now: datetime) -> None:
        """Delete what mailboxes were counted by before the period, now and then."""
        time = asyncio.get_running_loop().time()
        if time < self._forgets_at:
            return
        if await forget_old(self.ledger.database.background, now) < FORGET_ROWS_MAX:
            self._forgets_at = time + FORGET_SECONDS

    def _has_turn(self, stream: UUID) -> None:
        """Remember whose turn it was, as the latest."""
        if stream in self._had_turns:
            self._had_turns.remove(stream)
        self._had_turns.append(stream)

    async def _attempt(
        self, transaction: Transaction, row: Row, attempt: int, now: datetime
    ) -> MailOutcome:
        """Try to send a mail."""
        name: str = row["message_id"]
        try:
            sending = self._outcome(transaction, row, attempt, now)
            done = await outcome_of(name, attempt, FOR_A_DAY, sending)
        except ArchiveUnavailable:
            # Late rather than twice: it waits as for a busy server, and this is no attempt of
            # the mail's own, or a day without the archive would give up every mail.
            log.warning("mail waits for the archive", message_id=name)
            return MailOutcome("waiting", attempt - 1, timedelta(seconds=NOTES_SECONDS))
        except Exception as error:  # a bug of ours, or of a library
            if is_infrastructure_error(error):  # the driver's own, inside a transaction
                raise
            # A bug in one mail must not block the others: it waits as for a busy server.
            log.exception("mail faulty", message_id=name)
            return outcome("waiting", attempt, FOR_A_DAY)
        if done.state == "busy":
            # No attempt of its own: it takes its turn behind another, or an erasure.
            return MailOutcome("waiting", attempt - 1, timedelta(seconds=SEND_SECONDS_MAX))
        return done

    async def _outcome(
        self, transaction: Transaction, row: Row, attempt: int, now: datetime
    ) -> str | None:
        if await self.sent.has(row):
            return None
        if attempt > ATTEMPTS_MAX:  # the last one was cut off
            return "failed"
        return await self._deliver(transaction, row, now)

    async def _deliver(self, transaction: Transaction, row: Row, now: datetime) -> str | None:
        name: str = row["message_id"]
        try:
            mail = await self.compose(transaction, row, now)
            if mail is None or isinstance(mail, SharedMail):
                return await _shared(transaction, name, mail, now)
            counted = (mail.partner_id, mail.recipient, now, mail.kind)
            admission = await admit(transaction, name, *counted)
            if admission != "admitted":
                if admission == "withheld":
                    log.warning("mail withheld", message_id=name, partner_id=mail.partner_id)
                return admission
        except BeingErased:
            return "busy"
        await self.transport.send(mail.message)
        await self._note(row, mail.message["Message-ID"])
        return None

    async def _note(self, row: Row, header: str) -> None:
        """Note that a mail was sent, if that can be."""
        try:
            await self.sent.note(row, header)
        except ArchiveUnavailable:
            # It is sent: sending it again, only to note it, would be the very fault.
            log.error("sent mail not noted", message_id=row["message_id"])  # noqa: TRY400 - not ours


async def _shared(
    transaction: Transaction, name: str, mail: SharedMail | None, now: datetime
) -> str:
    """Queue a mail for each of the people whom a notice is for, if it still is for any."""
    if mail is None:
        return "obsolete"
    await transaction.fetch(_SQL.outbox_share, name, SHARE, mail.addressees, now)
    return "shared"
