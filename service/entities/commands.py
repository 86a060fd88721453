"""Registering businesses, and correcting their details."""

from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from projections.connections.reader import is_established
from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId, once_id, stream_id
from service.facts.entities import (
    EntityCorrected,
    EntityRegistered,
    StageMails,
    StageMailsChosen,
    entity_stream,
    stage_mails,
)
from service.ledger.encryption import DataKey
from service.ledger.events import Cause
from service.ledger.folding import Folding
from service.ledger.ledger import Ledger
from service.ledger.service_keys import Secrets, ServiceKeyStore
from service.ledger.transaction import Transaction
from service.ledger.writing import Append

_TAKEN: Final = (
    "A business with this email address or company number uses the service."
    " --another adds one more at its address."
)
_NUMBER_TAKEN: Final = "A business with this company number uses the service; no other can have it."

_STAGE_MAILS: Final = Folding(StageMails(), stage_mails, personal=False)


class Registration(NamedTuple):
    """A business to register: the event, the new key that encrypts it, and the append of both."""

    event: EntityRegistered
    key: DataKey
    append: Append


def register(
    ledger: Ledger,
    secrets: Secrets,
    cause: Cause,
    *,
    entity_id: str,
    name: str,
    email: str,
    company_number: str | None = None,
    established: bool = False,
) -> Registration:
    """Return the registration of an entity, encrypted under its own new data key."""
    stream = entity_stream(ledger.name, entity_id)
    event = EntityRegistered(
        entity_id=entity_id,
        established=established,
        name=name,
        email=email,
        company_number=company_number,
        email_hash=secrets.lookup_email(email),
        company_number_hash=secrets.lookup_company_number(company_number),
    )
    key = ledger.master_keys.new_data_key(stream)
    append = Append(stream, 0, [event], cause, key, new_key=True, public_ids=[entity_id])
    return Registration(event, key, append)


def business_locks(event: EntityRegistered) -> list[UUID]:
    """Return the locks under which one business can become established only once."""
    found_by = [event.email_hash, event.company_number_hash]
    return [stream_id("business", value) for value in found_by if value is not None]


async def refuse_established(
    transaction: Transaction,
    business: EntityRegistered,
    *,
    same_address: bool = False,
    message: str | None = None,
) -> None:
    """Refuse with `onboarding_unavailable` where a business like this uses the service already.

    `same_address` allows its email address to be another business's too.
    """
    email_hash = None if same_address else business.email_hash
    if await is_established(transaction, email_hash, business.company_number_hash):
        raise Refusal("onboarding_unavailable", message)


def corrected(
    secrets: Secrets, entity: EntityRegistered, name: str, number: str | None
) -> EntityRegistered:
    """Return an entity's registration with the details that its person has confirmed."""
    return msgspec.structs.replace(
        entity,
        name=name,
        company_number=number,
        company_number_hash=secrets.lookup_company_number(number),
    )


def correction(entity: EntityRegistered) -> EntityCorrected:
    """Return the event that corrects an entity's registration to this one."""
    return EntityCorrected(
        entity_id=entity.entity_id,
        name=entity.name,
        company_number=entity.company_number,
        company_number_hash=entity.company_number_hash,
    )


@dataclass(frozen=True, slots=True)
class EntityCommands:
    """Writes entities to one ledger."""

    ledger: Ledger
    secrets: ServiceKeyStore
    clock: Clock
    new_id: NewId

    async def choose_stage_mails(self, entity_id: str, cause: Cause, *, wanted: bool) -> None:
        """Record whether a business's person wants to be told when a claim moves on.

        Choosing the same again changes nothing. Refuses with `entity_not_found`, and with
        `rate_limited` who wants to be told once more, beyond the bound of the day.
        """
        stream = entity_stream(self.ledger.name, entity_id)

        async def attempt(transaction: Transaction) -> None:
            known = await transaction.fold(stream, _STAGE_MAILS)
            if not known.version:
                raise Refusal("entity_not_found")
            if wanted != known.wanted:
                event = StageMailsChosen(entity_id=entity_id, wanted=wanted)
                if wanted:  # whoever has had enough of them can always say so
                    known.changes.allow([event], (StageMailsChosen,), cause.actor, self.clock())
                await transaction.append(Append(stream, known.version, [event], cause))

        await self.ledger.decide(attempt)

    async def add(
        self,
        name: str,
        email: str,
        company_number: str | None,
        cause: Cause,
        *,
        another: bool = False,
        once: str | None = None,
    ) -> str:
        """Register a business that uses the service already; return its entity id.

        Refuses with `onboarding_unavailable` when its address or number is another business's;
        `another` allows the address, whose person then has several businesses to choose from.
        With a reference, `once`, a repetition returns the id that the first call made. Refuses with
        `reference_used` where that was another business.
        """
        entity_id = once_id("ent", once, self.ledger.name) or self.new_id("ent", self.clock())
        registration = register(
            self.ledger,
            await self.secrets.get(),
            cause,
            entity_id=entity_id,
            name=name,
            email=email,
            company_number=company_number,
            established=True,
        )
        business = registration.event

        async def attempt(transaction: Transaction) -> str:
            await transaction.lock(*business_locks(business))
            if once is not None and (
                known := await transaction.read(registration.append.stream_id)
            ):
                if known[0].event != business:
                    raise Refusal("reference_used")
                return entity_id
            message = _NUMBER_TAKEN if another else _TAKEN
            await refuse_established(transaction, business, same_address=another, message=message)
            await transaction.append(registration.append)
            return entity_id

        return await self.ledger.decide(attempt)
