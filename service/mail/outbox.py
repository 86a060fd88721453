"""From the log to the mail server: a subscriber that notes what to send, a loop that sends it.

At least once, under a Message-ID that stays the same (decision 13). The outbox refers to
events; the address and the link are read and made again when the mail is sent (decision 15).
"""

from collections.abc import Sequence
from datetime import timedelta
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Final

import structlog

from projections.partners.reader import PartnersReader
from projections.runner import EVENTS_MAX
from service.clock import Clock
from service.ledger.database import LedgerError, Row
from service.ledger.events import Recorded
from service.ledger.ledger import Ledger, Transaction, Write
from service.ledger.sql import Sql
from service.mail.messages import magic_link_mail
from service.mail.transport import MailRefused, MailTransport, MailUnavailable
from service.onboardings.commands import PURPOSE
from service.onboardings.decisions import fold
from service.onboardings.events import OnboardingStarted
from service.secrets import SecretsStore

ATTEMPTS_MAX: Final = 20
"""With the waits below, about a day; afterwards the mail is given up and an error logged."""
WAIT_SECONDS_MAX: Final = 2 * 3600
SEND_SECONDS_MAX: Final = 20.0

_NOTE = Sql("service.mail", "outbox_note")
_DUE = Sql("service.mail", "outbox_due")
_TAKE = Sql("service.mail", "outbox_take")
_SETTLE = Sql("service.mail", "outbox_settle")

log = structlog.get_logger()


class MailSubscriber:
    """Subscriber of the live ledger: puts the mail of each onboarding into the outbox."""

    name = "mail"
    events_max = EVENTS_MAX
    topics = (OnboardingStarted,)

    async def handle(self, transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Note what to send, in the transaction that moves the checkpoint."""
        await transaction.write(
            Write(
                _NOTE,
                (recorded.event.onboarding_id, recorded.stream_id, recorded.meta.at),
            )
            for recorded in events
            if isinstance(recorded.event, OnboardingStarted) and recorded.event.mail_wanted
        )


class Outbox:
    """Sends what is due, one mail a transaction; any number of processes may."""

    def __init__(
        self,
        live: Ledger,
        partners: PartnersReader,
        secrets: SecretsStore,
        transport: MailTransport,
        *,
        public_url: str,
        sender: str,
        clock: Clock,
    ) -> None:
        """Take the parts that the bootstrap chose."""
        self._live = live
        self._partners = partners
        self._secrets = secrets
        self._transport = transport
        self._public_url = public_url
        self._sender = sender
        self._domain = parseaddr(sender)[1].rpartition("@")[2]
        self._clock = clock

    async def step(self) -> int:
        """Send one mail that is due; answer how many were taken up."""
        now = self._clock()
        if not await self._live.database.fetchrow(_DUE, now):
            return 0
        async with self._live.transaction(SEND_SECONDS_MAX) as transaction:
            row = await transaction.fetchrow(_TAKE, now)
            if row is None:
                return 0
            state = await self._deliver(transaction, row)
            attempts = row["attempts"] + 1
            if state == "waiting" and attempts >= ATTEMPTS_MAX:
                state = "failed"
            if state == "failed":
                log.error("mail given up", message_id=row["message_id"], attempts=attempts)
            wait = timedelta(seconds=min(2**attempts, WAIT_SECONDS_MAX))
            await transaction.fetch(_SETTLE, row["message_id"], state, attempts, now + wait)
        return 1

    async def _deliver(self, transaction: Transaction, row: Row) -> str:
        try:
            message = await self._compose(transaction, row)
            if message is None:
                return "obsolete"
            await self._transport.send(message)
        except LedgerError:
            raise
        except MailRefused:
            log.warning("mail refused", message_id=row["message_id"])
            return "failed"
        except MailUnavailable:
            log.warning("mail waits", message_id=row["message_id"])
            return "waiting"
        except Exception:
            # A fault of ours in one mail must not hold up the others: it waits like a busy server.
            log.exception("mail faulty", message_id=row["message_id"])
            return "waiting"
        return "sent"

    async def _compose(self, transaction: Transaction, row: Row) -> EmailMessage | None:
        """Answer the mail; None when nobody is to get it any more."""
        onboarding = fold(await transaction.read(row["stream_id"]))
        if onboarding is None or onboarding.completed or onboarding.started.details is None:
            return None
        started, details = onboarding.started, onboarding.started.details
        (partner,) = await self._partners.partners(started.partner_id)
        if partner["status"] != "approved" or started.expires_at is None:
            return None
        token = (await self._secrets.get()).link_token(PURPOSE, started.onboarding_id)
        return magic_link_mail(
            to=details["user_email"],
            user_name=details.get("user_name"),
            company_name=details["company_name"],
            partner_name=partner["name"],
            link=f"{self._public_url}/onboarding/{token}",
            expires_at=started.expires_at,
            sender=self._sender,
            message_id=f"{row['message_id']}@{self._domain}",
            date=row["noted_at"],
        )
