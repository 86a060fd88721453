"""From the log to the mail server: a subscriber queues mail (`queueing.py`), a loop sends it.

At least once, under a Message-ID that stays the same (decision 14). The outbox refers to
events; the address and the link are read and made again when the mail is sent (decision 10).

An attempt is counted, with its wait, in a transaction of its own before anything leaves, so that a
sender that is cut off, wherever, cannot send again at once or for ever:
- before the count is committed: nothing has happened;
- after the count, before the server has the mail: it is late by the wait;
- after the server has it, before the note: it is sent again after the wait, which grows, and at
  most ATTEMPTS_MAX times in all, under the same Message-ID;
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
from service.core.retries import ATTEMPTS_MAX, wait_after
from service.ledger.database import Row, is_infrastructure_error
from service.ledger.effects import BeingErased
from service.ledger.ledger import Ledger, Transaction
from service.ledger.sql import queries
from service.mail.composing import Compose, SharedMail
from service.mail.port import MailRefused, MailTransport, MailUnavailable
from service.mail.queueing import SHARE
from service.mail.recipients import FORGET_ROWS_MAX, FORGET_SECONDS, admit, forget_old
from service.mail.sent import SentMail

SEND_SECONDS_MAX: Final = 20.0
"""The transport's deadline and QUIT, a read and a write of the archive, time to spare."""
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
            later = now + timedelta(seconds=SEND_SECONDS_MAX) + wait_after(attempt)
            await transaction.fetch(
                _SQL.outbox_settle, row["message_id"], "waiting", attempt, later
            )
        async with self.ledger.transaction(background=SEND_SECONDS_MAX) as transaction:
            # None where it was erased, settled or taken up again meanwhile.
            if await transaction.fetchrow(_SQL.outbox_hold, row["message_id"], attempt) is not None:
                outcome = await self._attempt(transaction, row, attempt, now)
                await transaction.fetch(_SQL.outbox_settle, row["message_id"], *outcome)
        return 1

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
    ) -> tuple[str, int, datetime]:
        """Try to send a mail; return its new state, its attempts and when the next is due."""
        name: str = row["message_id"]
        try:
            state = await self._outcome(transaction, row, attempt, now)
        except ArchiveUnavailable:
            # Late rather than twice: it waits as for a busy server, and this is no attempt of
            # the mail's own, or a day without the archive would give up every mail.
            log.warning("mail waits for the archive", message_id=name)
            return "waiting", attempt - 1, now + timedelta(seconds=NOTES_SECONDS)
        except Exception as error:  # a bug of ours, or of a library
            if is_infrastructure_error(error):  # the driver's own, inside a transaction
                raise
            # A bug in one mail must not block the others: it waits as for a busy server.
            log.exception("mail faulty", message_id=name)
            state = "waiting"
        if (
            state == "busy"
        ):  # no attempt of its own: it takes its turn behind another, or an erasure
            return "waiting", attempt - 1, now + timedelta(seconds=SEND_SECONDS_MAX)
        if state == "waiting" and attempt >= ATTEMPTS_MAX:
            state = "failed"
        if state == "failed":
            log.error("mail given up", message_id=name, attempts=attempt)
        return state, attempt, now + wait_after(attempt)

    async def _outcome(
        self, transaction: Transaction, row: Row, attempt: int, now: datetime
    ) -> str:
        if await self.sent.has(row):
            return "sent"
        if attempt > ATTEMPTS_MAX:  # the last one was cut off
            return "failed"
        return await self._deliver(transaction, row, now)

    async def _deliver(self, transaction: Transaction, row: Row, now: datetime) -> str:
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
            await self.transport.send(mail.message)
            await self.sent.note(row, mail.message["Message-ID"])
        except BeingErased:
            return "busy"
        except ArchiveUnavailable:  # only the note raises it
            # It is sent: sending it again, only to note it, would be the very fault.
            log.error("sent mail not noted", message_id=name)  # noqa: TRY400 - not ours
        except MailRefused:
            log.warning("mail refused", message_id=name)
            return "failed"
        except MailUnavailable as error:
            log.warning("mail waits", message_id=name, error_type=str(error))
            return "waiting"
        return "sent"


async def _shared(
    transaction: Transaction, name: str, mail: SharedMail | None, now: datetime
) -> str:
    """Queue a mail for each of the people whom a notice is for, if it still is for any."""
    if mail is None:
        return "obsolete"
    await transaction.fetch(_SQL.outbox_share, name, SHARE, mail.addressees, now)
    return "shared"
