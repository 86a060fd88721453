"""From an event to a mail: what it says, as of the moment when it is sent, and to whom.

A mail that is of no use any more, or whose addressee was erased, is None.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import structlog

from projections.connections.reader import access
from service.facts.claims import ClaimCreated, ClaimStageChanged
from service.facts.connections import EntityDisconnected
from service.facts.endpoints import EndpointDisabled
from service.facts.entities import EntityCorrected, EntityRegistered, entity_stream
from service.facts.onboardings import OnboardingStarted
from service.facts.onboardings import fold as fold_onboarding
from service.facts.partners import ApiKeyIssued, ApiKeyRevoked, Partner, PartnerSettingsChanged
from service.ledger.database import Row
from service.ledger.effects import hold_one
from service.ledger.erased import erased
from service.ledger.events import Event
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.mail import notices
from service.mail.letters import Letter, message_id
from service.mail.messages import greeted, magic_link_letter
from service.mail.partner_notices import addressees, kind_of, letter_about, told_of
from service.mail.passkey_notices import PASSKEY_EVENTS, PasskeyEvent, passkey_letter
from service.mail.past import LIVE_ENDPOINTS, TEAM, team_before
from service.mail.port import MailRefused
from service.mail.queueing import (
    ACCOUNT,
    BEYOND,
    DISCONNECTED,
    STAGE,
    AccountMailSubscriber,
    addressee_of,
    notice_id,
    sent_id,
)
from service.mail.recipients import Kind
from service.onboardings.commands import PURPOSE, magic_link
from service.partners.keys import successor_id
from service.partners.past import PAST

_SQL = queries("service.mail")

log = structlog.get_logger()


class Composed(NamedTuple):
    """A mail to send, the mailbox that it goes to, by its keyed hash, and whose doing it is.

    `kind` is what it is counted with.
    """

    message: EmailMessage
    recipient: str
    partner_id: str
    kind: Kind = "any"


class Addressed(NamedTuple):
    """A letter, the address that it goes to, and whose doing it is; `name` is the addressee's."""

    letter: Letter
    to: str
    partner_id: str
    name: str = ""
    kind: Kind = "any"


class SharedMail(NamedTuple):
    """A notice for several people, each of whom gets a mail of their own: who they are.

    By the ids of their membership: no address is kept beside the ledger.
    """

    addressees: Sequence[str]


VERSION_END: Final = 1 << 62
"""Beyond every version of a stream."""

Mail = Composed | SharedMail | None
Compose = Callable[[Transaction, Row, datetime], Awaitable[Mail]]
PartnerOf = Callable[[str], Awaitable[Partner]]
"""Returns a partner as its stream has it."""
AddressOf = Callable[[str], Awaitable[str | None]]
"""Returns the address of a person by their id, if it is known."""


@dataclass(frozen=True, slots=True)
class Composer:
    """Writes the mails of the ledgers live and accounts."""

    partner_of: PartnerOf
    address_of: AddressOf
    secrets: ServiceKeyStore
    public_url: str
    sender: str

    async def of_live(self, transaction: Transaction, row: Row, now: datetime) -> Mail:
        """Return a mail of the ledger live; None when it must no longer be sent.

        Raises MailRefused where nobody erased its person and their key is missing, and BeingErased.
        """
        if row["version"] is None:
            return await self._made(row, await self._magic_link(transaction, row, now))
        match await _event_of(transaction, row, EntityDisconnected, ClaimStageChanged):
            case EntityDisconnected() as event:
                return await self._disconnected(transaction, row, event)
            case ClaimStageChanged() as event if _whom(STAGE, row) == "":
                return await self._made(
                    row, await self._stage(transaction, row["stream_id"], event)
                )
            case _:
                return None

    async def of_accounts(self, transaction: Transaction, row: Row, _now: datetime) -> Mail:
        """Return a mail of the ledger of accounts; None when it must no longer be sent.

        Raises BeingErased.
        """
        event = await _event_of(transaction, row, *AccountMailSubscriber.topics)
        whom = _whom(ACCOUNT, row)
        if event is None or whom is None:
            return None
        if isinstance(event, EndpointDisabled):
            is_told = await _is_told(transaction, row, event)
            return await self._paused(row, whom, event) if is_told else None
        if isinstance(event, PASSKEY_EVENTS):
            await hold_one(transaction, row["stream_id"])
            return None if whom else await self._made(row, await self._passkey(event))
        if isinstance(event, ApiKeyIssued) and await _is_of_roll(transaction, row, event):
            return None
        partner = (await transaction.fold(row["stream_id"], PAST)).partner
        before = await _before(transaction, row, partner, event)
        people = told_of(before, event)
        one = whom or (next(iter(people)) if len(people) == 1 else "")
        letter = letter_about(partner, before, event, self._console(partner), one)
        return await self._told(row, one, people, partner, letter, kind_of(event, one))

    async def _told(
        self,
        row: Row,
        named: str,
        people: Mapping[str, str],
        partner: Partner,
        letter: Letter | None,
        kind: Kind = "any",
    ) -> Mail:
        """Return a notice to the one of these people whom it names, or who they all are."""
        if letter is None or not people:
            return None
        if len(people) > 1 and not named:
            return SharedMail(list(people))
        to = people.get(named) if named else next(iter(people.values()))
        if to is None:  # has left the team since
            return None
        return await self._made(row, Addressed(letter, to, partner.partner_id, kind=kind))

    async def _made(self, row: Row, mail: Addressed | None) -> Composed | None:
        if mail is None:
            return None
        message = mail.letter.message(
            to=mail.to,
            sender=self.sender,
            message_id=message_id(sent_id(row), self.sender),
            date=row["noted_at"],
            name=mail.name,
        )
        recipient = (await self.secrets.get()).lookup_recipient(mail.to)
        return Composed(message, recipient, mail.partner_id, mail.kind)

    async def _magic_link(
        self, transaction: Transaction, row: Row, now: datetime
    ) -> Addressed | None:
        began = await transaction.read_at(row["stream_id"], 1, (OnboardingStarted,))
        if isinstance(began, OnboardingStarted):
            await hold_one(transaction, entity_stream(transaction.ledger_name, began.entity_id))
        onboarding = fold_onboarding(await transaction.read(row["stream_id"]))
        if onboarding is None or onboarding.completed:
            return None
        started, details = onboarding.started, onboarding.started.details
        if row["message_id"] != started.onboarding_id:
            return _not_ours(row)
        if details is None:
            stream = entity_stream(transaction.ledger_name, started.entity_id)
            if await erased(transaction.fetch, transaction.binding, [stream]):
                return None  # before its mail was queued, or the erasure would have settled it
            log.error("mail not opened", message_id=row["message_id"])
            raise MailRefused("the key of its person's data is missing")
        partner = await self.partner_of(started.partner_id)
        expires_at = started.expires_at
        if partner.status != "approved" or expires_at is None or expires_at <= now:
            return None
        token = (await self.secrets.get()).link_token(PURPOSE, started.onboarding_id)
        letter = magic_link_letter(
            user_name=details.get("user_name"),
            company_name=details["company_name"],
            partner_name=partner.name or "",
            link=magic_link(self.public_url, token),
            expires_at=expires_at,
        )
        name = greeted(details.get("user_name"))
        return Addressed(letter, details["user_email"], started.partner_id, name)

    async def _disconnected(
        self, transaction: Transaction, row: Row, event: EntityDisconnected
    ) -> Mail:
        whom = _whom(DISCONNECTED, row)
        if whom is None:
            return None
        partner = await self.partner_of(event.partner_id)
        known = await access(transaction, event.partner_id, event.entity_id)
        if partner.status != "approved" or known.connected:
            return None
        # Contract, section 1: the id of a business is told to whom has used it alone.
        used = await transaction.fetchrow(_SQL.entity_used, event.partner_id, event.entity_id)
        letter = notices.partner_disconnected(
            partner_name=partner.name or "",
            entity_id=event.entity_id if used else None,
            console=self._console(partner),
            by_customer=known.is_ended_by_customer,
        )
        return await self._told(row, whom, addressees(partner), partner, letter)

    async def _stage(
        self, transaction: Transaction, of_claim: UUID, event: ClaimStageChanged
    ) -> Addressed | None:
        claim = await transaction.fetchrow(_SQL.claim_told, event.claim_id)
        if claim is None or not claim["stage_mails"] or claim["stage"] != event.stage:
            return None  # it has moved on since, which another mail says
        created = await transaction.read_at(of_claim, 1, (ClaimCreated,))
        if not isinstance(created, ClaimCreated) or created.entity_id != claim["entity_id"]:
            raise MailRefused("a read model says that its claim is another business's")
        stream = entity_stream(transaction.ledger_name, claim["entity_id"])
        await hold_one(transaction, stream)
        business = await transaction.read_at(stream, 1, (EntityRegistered,))
        email = business.email if isinstance(business, EntityRegistered) else None
        if not isinstance(business, EntityRegistered) or email is None:
            return None
        corrected = await transaction.read_last(stream, (EntityCorrected,), before=VERSION_END)
        name = corrected.name if isinstance(corrected, EntityCorrected) else business.name
        partner_id, entity_id = created.partner_id, created.entity_id
        letter = notices.stage_changed(
            company_name=name or "",
            stage=event.stage,
            claim=f"{self.public_url}/account/{entity_id}/{partner_id}/claims/{event.claim_id}",
        )
        return Addressed(letter, email, partner_id)

    async def _paused(self, row: Row, whom: str, event: EndpointDisabled) -> Mail:
        partner = await self.partner_of(event.partner_id)
        if partner.status != "approved":
            return None
        letter = notices.webhook_paused(
            partner_name=partner.name or "",
            is_gone=event.reason == "gone",
            console=f"{self._console(partner)}/webhooks/{event.endpoint_id}",
        )
        return await self._told(row, whom, addressees(partner), partner, letter)

    async def _passkey(self, event: PasskeyEvent) -> Addressed | None:
        to = await self.address_of(event.person_id)
        if to is None:  # erased, or the team reset what nobody had used for long
            return None
        letter = passkey_letter(event, f"{self.public_url}/security")
        return Addressed(letter, to, event.person_id, kind="access")

    def _console(self, partner: Partner) -> str:
        return f"{self.public_url}/console/{partner.partner_id}"


def _whom(kind: str, row: Row) -> str | None:
    """Return whom a notice's row names (`addressee_of`); log a row that this service did not queue.

    Somebody could otherwise have a mail sent again and again, under one id after the other.
    """
    whom = addressee_of(kind, row)
    return _not_ours(row) if whom is None else whom


def _not_ours(row: Row) -> None:
    log.error("mail not queued by this service", message_id=row["message_id"])


async def _is_told(transaction: Transaction, row: Row, event: EndpointDisabled) -> bool:
    """Return whether a pause of live mode is told: the last while it lasts, and one a day."""
    known = (await transaction.fold(row["stream_id"], LIVE_ENDPOINTS)).get(event.endpoint_id)
    if known is None or known.disabled != event.reason:
        return False
    *earlier, (last, _) = known.pauses
    if last != row["version"]:
        return False
    ids = [notice_id(ACCOUNT, row["stream_id"], version) for version, _ in earlier]
    return not await transaction.fetch(_SQL.outbox_any_sent, ids, BEYOND)


async def _is_of_roll(transaction: Transaction, row: Row, event: ApiKeyIssued) -> bool:
    """Return whether a key took another's place, which is told with the other's end behind it."""
    behind = await transaction.read_at(row["stream_id"], row["version"] + 1, (ApiKeyRevoked,))
    if not isinstance(behind, ApiKeyRevoked):
        return False
    return event.key_id == successor_id(event.partner_id, behind.key_id)


async def _before(transaction: Transaction, row: Row, partner: Partner, event: Event) -> Partner:
    """Return a partner with the team and the return URL that it had before an event."""
    stream, version = row["stream_id"], row["version"]
    members = team_before(await transaction.fold(stream, TEAM), version)
    before = msgspec.structs.replace(partner, members=members)
    if not isinstance(event, PartnerSettingsChanged):
        return before
    earlier = await transaction.read_last(stream, (PartnerSettingsChanged,), before=version)
    url = earlier.return_url if isinstance(earlier, PartnerSettingsChanged) else None
    return msgspec.structs.replace(before, return_url=url)


async def _event_of(transaction: Transaction, row: Row, *topics: type[Event]) -> Event | None:
    """Return the event that a mail is about."""
    return await transaction.read_at(row["stream_id"], row["version"], topics)
