"""Sending sign-in links: one mail a transaction, oldest due first."""

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Final

import structlog

from service.ledger.database import Database, Row
from service.ledger.encryption import KeyUnknown, MasterKeys
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.mail.letters import message_id
from service.mail.messages import sign_in_letter
from service.mail.port import MailRefused, MailTransport, MailUnavailable
from service.people.sign_in import PURPOSE, unwrapped

SEND_SECONDS_MAX: Final = 20.0

_SQL = queries("service.people")

log = structlog.get_logger()


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

    async def step(self) -> int:
        """Send one mail that is due, and return how many were taken."""
        schema = self.accounts.schema
        if not await self.accounts.background.fetchrow(_SQL.mail_due):
            return 0
        async with self.accounts.background.transaction(SEND_SECONDS_MAX) as connection:
            row = await connection.fetchrow(_SQL.mail_take.on(schema))
            if row is None:
                return 0
            state = await self._deliver(row)
            wait = timedelta(seconds=2 ** min(row["mail_attempts"], 6))
            await connection.execute(_SQL.mail_settle.on(schema), row["link_id"], state, wait)
        return 1

    async def _deliver(self, row: Row) -> str:
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
        try:
            await self.transport.send(
                letter.message(
                    to=asked.email,
                    sender=self.sender,
                    message_id=message_id(link_id, self.sender),
                    date=row["asked_at"],
                )
            )
        except MailRefused:
            log.warning("mail refused", message_id=link_id)
            return "failed"
        except MailUnavailable as error:
            log.warning("mail waits", message_id=link_id, error_type=str(error))
            return "waiting"
        return "sent"
