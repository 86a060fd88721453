"""Starting and finishing onboardings: a verb each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from projections.connections.reader import access
from projections.onboardings.reader import OnboardingsReader
from projections.partners.reader import PartnersReader
from service.core.clock import Clock, to_milliseconds
from service.core.errors import PartnerUnapproved, Refusal
from service.core.ids import NewId
from service.entities.commands import (
    business_locks,
    corrected,
    correction,
    refuse_established,
    register,
)
from service.facts import replays
from service.facts.caller import Caller
from service.facts.connections import EntityConnected, connection_stream
from service.facts.entities import EntityRegistered, entity_stream
from service.facts.onboardings import (
    Onboarding,
    OnboardingCompleted,
    OnboardingStarted,
    fold,
    onboarding_stream,
)
from service.facts.privacy import PersonalDataErased
from service.ledger.database import Row, always
from service.ledger.events import Cause, Recorded
from service.ledger.ledger import Ledger
from service.ledger.service_keys import Secrets, ServiceKeyStore, lookup_bytes, token_hash
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import Append, Decided, Proposal
from service.onboardings import decisions
from service.onboardings.wire import Confirmed, OnboardingRequest
from service.sandbox.triggers import refuse_trigger

LINK_LIFETIME: Final = timedelta(days=7)
FINISHED_SHOWN: Final = timedelta(hours=1)
PURPOSE: Final = "onboarding"

_SQL = queries("service.onboardings")


class Started(NamedTuple):
    """The outcome of a start: `matches` is whether a replay has the same body, else None."""

    onboarding_id: str
    already_existed: bool
    magic_link_url: str | None
    matches: bool | None


class Invited(NamedTuple):
    """An onboarding to finish: the partner, its details (contract 2.1), the expiry."""

    partner_id: str
    details: dict[str, Any]
    expires_at: datetime


class Announced(NamedTuple):
    """What whoever has a magic link may know: the partner, and a part of the person's address."""

    partner_id: str
    address_hint: str


class Finished(NamedTuple):
    """What a magic link did: the business that it onboarded, and the partner it connected."""

    entity_id: str
    partner_id: str


@dataclass(frozen=True, slots=True)
class OnboardingCommands:
    """Writes onboardings to one ledger."""

    ledger: Ledger
    onboardings: OnboardingsReader
    partners: PartnersReader
    secrets: ServiceKeyStore
    public_url: str
    clock: Clock
    new_id: NewId

    async def start(self, caller: Caller, request: OnboardingRequest) -> Started:
        """Onboard a business, or return what the first call did (contract 4.1).

        Refuses with `onboarding_unavailable`, or `partner_disconnected` on a replay.
        """
        stream = onboarding_stream(
            caller.mode, caller.epoch, caller.partner_id, request.partner_user_id
        )
        secrets, binding = await self.secrets.get(), await self.ledger.binding()

        async def decide() -> Decided[Started]:
            business = [
                lookup_bytes(secrets.lookup_email(request.user_email)),
                lookup_bytes(secrets.lookup_company_number(request.company_number or None)),
            ]
            reads = self.ledger.database.reads
            row = always(
                await reads.fetchrow(
                    _SQL.context, stream, caller.partner_id, *business, binding.retired
                )
            )
            if row["made"] is not None:
                binding.check_first(stream, OnboardingStarted.__name__, row)
                return self._replay(stream, caller, request, row)
            refuse_trigger(caller.mode, "start_onboarding", request.partner_user_id)
            return self._start(stream, caller, request, secrets, row)

        return await self.ledger.decide_and_write(decide)

    async def look(self, token: str, visitor: str | None) -> Invited:
        """Return the invitation of a magic link without using it. Refuses as `complete` does."""
        row, started = await self._opened(token)
        await self._proof(started, visitor)
        return Invited(row["partner_id"], started.details or {}, row["expires_at"])

    async def announce(self, token: str) -> Announced:
        """Return who asks with a magic link, and whom, so that they know the address to use.

        Refuses as `complete` does, but for the proof.
        """
        row, started = await self._opened(token)
        hint = decisions.address_hint((started.details or {}).get("user_email", ""))
        return Announced(row["partner_id"], hint)

    async def complete(
        self,
        token: str,
        request_id: str,
        confirmed: Confirmed | None = None,
        *,
        visitor: str | None = None,
        actor: str | None = None,
    ) -> tuple[str, str, str]:
        """Finish an onboarding as its person, or as `actor`.

        Returns the ids of onboarding, entity and partner.
        `confirmed` is what the person confirmed on the page; None keeps what the partner sent.
        `visitor` is the look-up of the address that is signed in, without which a link that its
        partner had, too, is refused with `onboarding_needs_sign_in`. Refuses with
        `magic_link_invalid`, `magic_link_already_used`, `magic_link_expired`, or
        `onboarding_unavailable` when the business has been onboarded in another way since.
        """
        row = await self._link(token)
        connection = connection_stream(self.ledger.name, row["partner_id"], row["entity_id"])
        stream = entity_stream(self.ledger.name, row["entity_id"])
        secrets = await self.secrets.get()
        cause = Cause(actor or f"customer:{row['entity_id']}", request_id)

        async def attempt(transaction: Transaction) -> tuple[str, str, str]:
            past = await transaction.read(stream)
            known_as = _registered(past)
            if confirmed is not None:
                known_as = corrected(
                    secrets, known_as, confirmed.company_name, confirmed.company_number or None
                )
            await transaction.lock(*business_locks(known_as))
            await transaction.lock(connection)
            onboarding = await self._usable(transaction, row)
            proved_by = await self._proof(onboarding.started, visitor)
            await refuse_established(transaction, known_as)
            completed = decisions.complete(onboarding.started, confirmed, proved_by)
            finished = await self._finished(transaction, row, onboarding, cause, completed)
            if confirmed is not None and known_as != past[0].event:
                key = await transaction.data_key(stream)
                finished.append(Append(stream, len(past), [correction(known_as)], cause, key))
            await transaction.append(*finished)
            started = onboarding.started
            return started.onboarding_id, started.entity_id, started.partner_id

        return await self.ledger.decide(attempt)

    async def finished(self, token: str, visitor: str | None) -> Finished:
        """Return what a magic link did, for an hour after it was used, to the same person.

        Afterwards the person signs in to see it: a link is a credential that others may have
        obtained since. Refuses with `magic_link_invalid`, `onboarding_needs_sign_in` or, after the
        hour, `magic_link_already_used`.
        """
        row = await self._link(token)
        if row["completed_at"] is None:
            raise Refusal("magic_link_invalid")
        async with self.ledger.transaction() as transaction:
            if await transaction.now() > row["completed_at"] + FINISHED_SHOWN:
                raise Refusal("magic_link_already_used")
            onboarding = await _of_link(transaction, row)
        await self._proof(onboarding.started, visitor)
        return Finished(row["entity_id"], row["partner_id"])

    async def _opened(self, token: str) -> tuple[Row, OnboardingStarted]:
        """Return the link that can be used now, and the onboarding that it is for."""
        row = await self._link(token)
        async with self.ledger.transaction() as transaction:
            return row, (await self._usable(transaction, row)).started

    async def _link(self, token: str) -> Row:
        row = await self.onboardings.by_link(token_hash(token))
        if row is None:
            raise Refusal("magic_link_invalid")
        if not await self.partners.is_approved(row["partner_id"]):
            raise PartnerUnapproved("magic_link_invalid")
        return row

    async def _usable(self, transaction: Transaction, row: Row) -> Onboarding:
        """Return the onboarding of a link that can be used now."""
        onboarding = await _of_link(transaction, row)
        decisions.check_link(onboarding, expired=row["expires_at"] <= await transaction.now())
        if onboarding.started.expires_at != row["expires_at"]:  # an altered row has it last longer
            raise Refusal("magic_link_invalid")
        return onboarding

    async def _proof(self, started: OnboardingStarted, visitor: str | None) -> str:
        """Return how a visitor proves to be an onboarding's person; refuses as `complete` does."""
        if started.details is None:  # erased since
            raise Refusal("magic_link_invalid")
        secrets = await self.secrets.get()
        address_hash = secrets.lookup_email(started.details["user_email"])
        return decisions.proof(started, address_hash, visitor)

    def _start(
        self,
        stream: UUID,
        caller: Caller,
        request: OnboardingRequest,
        secrets: Secrets,
        row: Row,
    ) -> Decided[Started]:
        live = self.ledger.name == "live"
        now = self.clock()
        onboarding_id, entity_id = self.new_id("onb", now), self.new_id("ent", now)
        entity = register(
            self.ledger,
            secrets,
            caller.cause,
            entity_id=entity_id,
            name=request.company_name,
            email=request.user_email,
            company_number=request.company_number or None,
        )
        if live and row["taken"]:
            raise Refusal("onboarding_unavailable")
        token = secrets.link_token(PURPOSE, onboarding_id)
        started = decisions.start(
            caller,
            request,
            entity.key,
            onboarding_id=onboarding_id,
            entity_id=entity_id,
            magic_link_hash=token_hash(token) if live else None,
            expires_at=to_milliseconds(row["now"]) + LINK_LIFETIME if live else None,
        )
        appends = [
            Append(stream, 0, [started], caller.cause, entity.key, public_ids=[onboarding_id]),
            entity.append,
        ]
        if not live:
            appends.append(self._connect(started, caller.cause))
        # The placeholder's host never resolves (RFC 2606).
        placeholder = f"https://sandbox.invalid/onboarding/{onboarding_id}"
        url = magic_link(self.public_url, token) if live else placeholder
        result = Started(onboarding_id, already_existed=False, magic_link_url=url, matches=None)
        return Decided(result, Proposal(appends))

    def _replay(
        self, stream: UUID, caller: Caller, request: OnboardingRequest, row: Row
    ) -> Decided[Started]:
        made, _ = self.ledger.codec.decode(stream, 1, OnboardingStarted.__name__, row["made"])
        if not isinstance(made, OnboardingStarted):
            raise TypeError(f"{type(made).__name__} does not begin an onboarding")
        if row["disconnected_at"] is not None:
            raise Refusal("partner_disconnected")
        key = None
        if row["key_id"] is not None:
            key = self.ledger.master_keys.open_data_key(
                row["key_id"], row["wrapped"], row["master_key_id"]
            )
        compared = replays.compare(caller.mode, made, request, key)
        result = Started(made.onboarding_id, True, None, compared.matches)
        if compared.mismatch is None:
            return Decided(result)
        # The connection need not stand still: nothing but the mismatch is recorded.
        mismatch = Append(compared.mismatch.stream_id, 0, [compared.mismatch.event], caller.cause)
        return Decided(result, Proposal([mismatch]), once=True)

    async def _finished(
        self,
        transaction: Transaction,
        row: Row,
        onboarding: Onboarding,
        cause: Cause,
        completed: OnboardingCompleted,
    ) -> list[Append]:
        """Return the appends that finish an onboarding and connect its entity."""
        started = onboarding.started
        subject = entity_stream(self.ledger.name, started.entity_id)
        key = await transaction.data_key(subject)
        if key is None:  # erased since: there is nothing left to finish
            raise Refusal("magic_link_invalid")
        appends = [Append(row["stream_id"], onboarding.version, [completed], cause, key)]
        known = await access(transaction, started.partner_id, started.entity_id)
        if not known.connected:
            appends.append(self._connect(started, cause, known.version))
        return appends

    def _connect(self, started: OnboardingStarted, cause: Cause, version: int = 0) -> Append:
        partner_id, entity_id = started.partner_id, started.entity_id
        connected = EntityConnected(
            partner_id=partner_id,
            entity_id=entity_id,
            via="onboarding",
            source_id=started.onboarding_id,
        )
        stream = connection_stream(self.ledger.name, partner_id, entity_id)
        return Append(stream, version, [connected], cause)


async def _of_link(transaction: Transaction, row: Row) -> Onboarding:
    """Return the onboarding that a link was made for; refuses where its event says otherwise.

    A read model found it: whoever alters a row has no other's onboarding by a link of their own.
    """
    onboarding = fold(await transaction.read(row["stream_id"]))
    bound = ("magic_link_hash", "onboarding_id", "entity_id", "partner_id")
    if onboarding is None or any(getattr(onboarding.started, one) != row[one] for one in bound):
        raise Refusal("magic_link_invalid")
    return onboarding


def _registered(past: Sequence[Recorded]) -> EntityRegistered:
    """Return an entity's registration; refuses where its personal data has been erased since."""
    if not past or any(isinstance(recorded.event, PersonalDataErased) for recorded in past):
        raise Refusal("magic_link_invalid")
    entity = past[0].event
    assert isinstance(entity, EntityRegistered)  # noqa: S101 - every entity begins so
    return entity


def magic_link(public_url: str, token: str) -> str:
    """Return the address that a person opens to finish; it is a credential."""
    return f"{public_url}/onboarding/{token}"
