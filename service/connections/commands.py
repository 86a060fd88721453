"""Issuing, approving and declining connect links; connecting and disconnecting."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeGuard

from projections.connect_links.reader import link_by_token
from projections.connections.reader import access
from projections.partners.reader import PartnersReader
from service.connections import decisions
from service.connections.decisions import Link
from service.core.clock import Clock, timestamp
from service.core.errors import PartnerUnapproved, Refusal
from service.core.ids import NewId
from service.facts.access import Access
from service.facts.caller import Caller
from service.facts.connections import (
    ConnectLinkDeclined,
    ConnectLinkIssued,
    ConnectLinkRedeemed,
    connection_stream,
    link_stream,
)
from service.facts.entities import entity_stream
from service.facts.privacy import PersonalDataErased
from service.ledger.database import Row, always
from service.ledger.events import Cause, Event, Recorded
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore, token_hash
from service.ledger.transaction import Transaction
from service.ledger.writing import Append, Decided, Proposal

LINK_LIFETIME: Final = timedelta(hours=1)
"""Contract section 8: one hour from issue, by the database's clock."""

_BOUND: Final = ("token_hash", "link_id", "partner_id", "expires_at")
"""Of a link's row: what has to be as the event that issued it says."""


class IssuedLink(NamedTuple):
    """A single-use link to send to a customer; `expires_at` None in test mode."""

    connect_url: str
    expires_at: str | None


class LinkView(NamedTuple):
    """What a customer is asked: which partner, under which label, until when."""

    partner_id: str
    label: str | None
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ConnectionCommands:
    """Writes connections and connect links to one ledger."""

    ledger: Ledger
    partners: PartnersReader
    secrets: ServiceKeyStore
    public_url: str
    clock: Clock
    new_id: NewId

    async def issue_link(
        self, caller: Caller, partner_user_id: str, label: str | None
    ) -> IssuedLink:
        """Issue a new link (contract 4.2). In test mode it is always the same, and does nothing."""
        live = self.ledger.name == "live"
        link_id = self.new_id("lnk", self.clock())
        subject = link_id if live else f"{caller.partner_id}\0{partner_user_id}"
        secrets = await self.secrets.get()
        token = ("" if live else "test_") + secrets.link_token(f"connect-{caller.mode}", subject)
        stream = link_stream(self.ledger.name, link_id)

        async def decide() -> Decided[IssuedLink]:
            expires_at = await self.ledger.now() + LINK_LIFETIME if live else None
            event = ConnectLinkIssued(
                link_id=link_id,
                partner_id=caller.partner_id,
                partner_user_id=partner_user_id,
                token_hash=token_hash(token),
                expires_at=expires_at,
                label=label,
            )
            key = None if label is None else self.ledger.master_keys.new_data_key(stream)
            append = Append(
                stream, 0, [event], caller.cause, key, new_key=True, public_ids=[link_id]
            )
            url = f"{self.public_url}/connect/{token}"
            issued = IssuedLink(url, None if expires_at is None else timestamp(expires_at))
            return Decided(issued, Proposal([append]))

        return await self.ledger.decide_and_write(decide)

    async def look(self, token: str) -> LinkView:
        """Return what a link asks for without using it. Refuses as `approve` does."""
        async with self.ledger.transaction() as transaction:
            link, issued = await _usable(transaction, token)
        if not await self.partners.is_approved(link.partner_id):
            raise PartnerUnapproved("connect_token_invalid")
        assert issued.expires_at is not None  # noqa: S101 - only links of live mode are found
        return LinkView(link.partner_id, issued.label, issued.expires_at)

    async def answer(self, token: str) -> Recorded | None:
        """Return the event of the answer that a link was given; None where it has none.

        Its label may have been erased since.
        """
        async with self.ledger.transaction() as transaction:
            row = await link_by_token(transaction, token_hash(token))
            past = await transaction.read(row["stream_id"]) if row else []
        if not past or not _is_issued(past[0].event, always(row)):
            return None
        answers = (ConnectLinkRedeemed, ConnectLinkDeclined)
        return next((one for one in past if isinstance(one.event, answers)), None)

    async def approve(self, token: str, entity_id: str, cause: Cause) -> str:
        """Connect a customer's entity to the partner that asked; return the partner's id.

        Refuses with `connect_token_invalid`, `connect_token_already_redeemed`,
        `connect_token_expired`, `entity_not_found` or `entity_already_linked`.
        """

        async def attempt(transaction: Transaction) -> str:
            link, _ = await _usable(transaction, token)
            if not await self.partners.is_approved(link.partner_id):
                raise PartnerUnapproved("connect_token_invalid")
            connection = connection_stream(self.ledger.name, link.partner_id, entity_id)
            # The entity's erasure holds its stream exclusively: it sees this link redeemed, and
            # erases its label too; or it came first, and the approval is refused below.
            await transaction.lock_shared([entity_stream(self.ledger.name, entity_id)])
            await transaction.lock(connection)
            known = await access(transaction, link.partner_id, entity_id)
            if known.connected:  # perhaps by this very link, while we waited for the lock
                decisions.usable(await link_by_token(transaction, token_hash(token)))
            redeemed, connected = decisions.approve(link, known)
            await transaction.append(
                Append(link.stream_id, 1, [redeemed], cause),
                Append(connection, known.version, [connected], cause),
            )
            return link.partner_id

        return await self.ledger.decide(attempt)

    async def decline(self, token: str, cause: Cause) -> None:
        """Decline a link; it cannot be approved afterwards."""

        async def attempt(transaction: Transaction) -> None:
            link, _ = await _usable(transaction, token)
            await transaction.append(Append(link.stream_id, 1, [decisions.decline(link)], cause))

        await self.ledger.decide(attempt)

    async def connect_by_staff(
        self, entity_id: str, partner_id: str, cause: Cause, expected_version: int | None = None
    ) -> None:
        """Connect an entity to a partner at its customer's request.

        Connecting twice changes nothing. Refuses with `partner_not_found`, `partner_state`,
        `entity_not_found`, or `entity_state` for an entity that has not finished its onboarding,
        and with `form_outdated` where the connection has changed since `expected_version`.
        """
        connection = connection_stream(self.ledger.name, partner_id, entity_id)

        async def attempt(transaction: Transaction) -> None:
            # As in `approve`: an erasure of the entity comes before this, or after it.
            await transaction.lock_shared([entity_stream(self.ledger.name, entity_id)])
            await transaction.lock(connection)
            partner = await self.partners.current(partner_id)
            if partner is None:
                raise Refusal("partner_not_found")
            if partner.status != "approved":
                raise Refusal("partner_state", "Only an approved partner can be connected.")
            known = await access(transaction, partner_id, entity_id)
            if events := decisions.connect_by_staff(known, partner_id, expected_version):
                await transaction.append(Append(connection, known.version, events, cause))

        await self.ledger.decide(attempt)

    async def disconnect(
        self, entity_id: str, partner_id: str, cause: Cause, expected_version: int | None = None
    ) -> None:
        """End a connection; ending it twice changes nothing. Claims wait for it, or it for them.

        Refuses with `form_outdated` where it has begun again since `expected_version`.
        """
        await change(
            self.ledger,
            partner_id,
            entity_id,
            cause,
            lambda known: decisions.disconnect(known, partner_id, expected_version),
        )


async def _usable(transaction: Transaction, token: str) -> tuple[Link, ConnectLinkIssued]:
    """Return a link that can be used, as it was issued; refuses as `ConnectionCommands.look` does.

    A read model found it: whoever alters a row has no link made anybody else's, or last longer.
    One that was erased asks for nothing any more: nobody could see what for.
    """
    found = await link_by_token(transaction, token_hash(token))
    link, row = decisions.usable(found), always(found)
    past = await transaction.read(link.stream_id)
    issued = past[0].event if past else None
    is_erased = any(isinstance(one.event, PersonalDataErased) for one in past)
    if is_erased or not _is_issued(issued, row):
        raise Refusal("connect_token_invalid")
    return link, issued


def _is_issued(event: object, row: Row) -> TypeGuard[ConnectLinkIssued]:
    """Return whether an event issued the link that a row has."""
    return isinstance(event, ConnectLinkIssued) and all(
        getattr(event, name) == row[name] for name in _BOUND
    )


async def change(
    ledger: Ledger,
    partner_id: str,
    entity_id: str,
    cause: Cause,
    decide: Callable[[Access], Sequence[Event]],
) -> None:
    """Decide on a connection under its lock, and append what was decided."""
    connection = connection_stream(ledger.name, partner_id, entity_id)

    async def attempt(transaction: Transaction) -> None:
        await transaction.lock(connection)
        known = await access(transaction, partner_id, entity_id)
        if events := decide(known):
            await transaction.append(Append(connection, known.version, events, cause))

    await ledger.decide(attempt)
