"""Sending sign-in links: one mail at a time, oldest due first.

An attempt is counted, with its wait, before anything leaves, as in service/mail/outbox.py. The link
can be used meanwhile: its row is not held, and a mail whose link was used is settled by that.
"""

from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from service.core.retries import ATTEMPTS_MAX, Retries
from service.facts.passkeys import passkeys_stream
from service.facts.people import person_id
from service.ledger.database import Connection, Database, Row
from service.ledger.effects import effect_lock
from service.ledger.encryption import KeyUnknown, MasterKeys
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.mail.letters import message_id
from service.mail.messages import sign_in_letter
from service.mail.outcomes import SEND_SECONDS_MAX, LateAnswers, MailOutcome, outcome, outcome_of
from service.mail.port import LateAnswer, MailTransport
from service.people.sign_in import PURPOSE, unwrapped

WAIT_SECONDS_MAX: Final = 64
LEASE: Final = timedelta(seconds=SEND_SECONDS_MAX)
"""After this, a mail of a process that was cut off is due again."""

_SQL = queries("service.people")
_SHARE = queries("service.ledger").lock_shared_try

log = structlog.get_logger()


def wait_after(attempt: int) -> timedelta:
    """Return how long to wait after an attempt, counted from 1: twice as long as before it."""
    return timedelta(seconds=min(2 ** (attempt - 1), WAIT_SECONDS_MAX))


RETRIES: Final = Retries(ATTEMPTS_MAX, wait_after)
"""More than there is time for while a link lives, but for two whose effect is unknown."""


@dataclass(frozen=True, slots=True)
class SignInMail:
    """Sends the mails that are due until their links expire; any number of processes may."""

    accounts: Database
    secrets: ServiceKeyStore
    master_keys: MasterKeys
    transport: MailTransport
    _: KW_ONLY
    public_url: str
    sender: str
    answers: LateAnswers = field(default_factory=LateAnswers, init=False)

    async def step(self) -> int:
        """Send one mail that is due, and return how many were taken."""
        pool = self.accounts.background
        if not await pool.fetchrow(_SQL.mail_due):
            return 0
        row = await pool.fetchrow(_SQL.mail_take, RETRIES.attempts_max, LEASE)
        if row is None:
            return 0
        done = None
        try:
            async with pool.transaction(SEND_SECONDS_MAX) as connection:
                done = await self._attempt(connection, row)
                if done is not None:
                    settle = _SQL.mail_settle.on(self.accounts.schema)
                    await connection.execute(settle, *_settled(row, row["mail_attempts"], done))
        finally:
            if done is not None and done.late is not None:
                self.answers.follow(self._answered(row, done.attempts, done.late))
        return 1

    async def _attempt(self, connection: Connection, row: Row) -> MailOutcome | None:
        """Try to send a mail; None where there is nothing to send any more.

        An erasure of the address comes first, or waits until the mail has left.
        """
        schema, link_id, attempt = self.accounts.schema, row["link_id"], row["mail_attempts"]
        whose = passkeys_stream(person_id(row["address_hash"].hex()))
        if not await connection.fetch(_SHARE.on(schema), [effect_lock(whose)]):
            return None
        link = await connection.fetchrow(_SQL.mail_read.on(schema), link_id, attempt)
        if link is None:  # used, or erased, meanwhile
            return None
        if attempt > RETRIES.attempts_max:
            return outcome("failed", attempt, RETRIES)
        return await outcome_of(link_id, attempt, RETRIES, self._deliver(link))

    async def _deliver(self, row: Row) -> str | None:
        link_id = row["link_id"]
        try:
            asked = unwrapped(self.master_keys, row)
        except KeyUnknown:  # altered, or its master key was retired: nobody can open it
            log.warning("mail not opened", message_id=link_id)
            return "failed"
        token = (await self.secrets.get()).link_token(PURPOSE, link_id)
        letter = sign_in_letter(
            link=f"{asked.origin or self.public_url}/sign-in/{token}", expires_at=row["expires_at"]
        )
        await self.transport.send(
            letter.message(
                to=asked.email,
                sender=self.sender,
                message_id=message_id(link_id, self.sender),
                date=row["asked_at"],
            )
        )
        return None

    async def _answered(self, row: Row, counted: int, late: LateAnswer) -> None:
        """Settle a mail by its late answer."""
        done = await outcome_of(row["link_id"], row["mail_attempts"], RETRIES, late.answer)
        await self.accounts.background.fetch(_SQL.mail_settle, *_settled(row, counted, done))


def _settled(row: Row, counted: int, done: MailOutcome) -> tuple[object, ...]:
    return row["link_id"], counted, done.state, done.attempts, done.wait
