"""Adding and removing addresses of the team."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId
from service.facts.people import (
    PersonalDataOpened,
    StaffAdded,
    StaffRemoved,
    opened_stream,
    staff_stream,
)
from service.facts.privacy import PersonalDataErased
from service.ledger.events import KEY_MISSING, Cause, Recorded
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import Append
from service.people.sessions import Person

_SQL = queries("service.people")


class StaffMember(NamedTuple):
    """One of the team."""

    staff_id: str
    email: str
    added_at: datetime
    person_id: str | None


class Team(NamedTuple):
    """Today's staff, and the ids of rows that no event explains: they give nobody access."""

    members: Sequence[StaffMember]
    unexplained: Sequence[str]


@dataclass(frozen=True, slots=True)
class StaffCommands:
    """Writes to the ledger of accounts."""

    accounts: Ledger
    secrets: ServiceKeyStore
    clock: Clock
    new_id: NewId

    async def add(self, email: str, cause: Cause) -> str:
        """Add an address, and return its staff id. Adding it twice changes nothing."""
        email_hash = (await self.secrets.get()).lookup_email(email)
        drawn = self.new_id("stf", self.clock())

        async def attempt(transaction: Transaction) -> str:
            stream, events = await newest_stream(transaction, email_hash)
            present = _present(events)
            if present is not None:
                return present
            known_key = await transaction.data_key(stream)
            key = known_key or self.accounts.master_keys.new_data_key(stream)
            event = StaffAdded(staff_id=drawn, email=email, email_hash=email_hash)
            await transaction.append(
                Append(stream, len(events), [event], cause, key, new_key=known_key is None)
            )
            return drawn

        return await self.accounts.decide(attempt)

    async def remove(self, email: str, cause: Cause) -> None:
        """Remove an address; refuses with `staff_not_found`."""
        email_hash = (await self.secrets.get()).lookup_email(email)

        async def attempt(transaction: Transaction) -> None:
            stream, events = await newest_stream(transaction, email_hash)
            present = _present(events)
            if present is None:
                raise Refusal("staff_not_found")
            await transaction.append(Append(stream, len(events), [StaffRemoved(present)], cause))

        await self.accounts.decide(attempt)

    async def list(self) -> Team:
        """Return today's staff, in the order in which they were added."""
        members, unexplained = list[StaffMember](), list[str]()
        async with self.accounts.transaction() as transaction:
            for row in await transaction.fetch(_SQL.list):
                staff_id, added = (
                    row["staff_id"],
                    _last_added(await transaction.read(row["stream_id"])),
                )
                if added is None or added.staff_id != staff_id:
                    unexplained.append(staff_id)
                    continue
                email, person_id = added.email or KEY_MISSING, _person_id(added)
                members.append(StaffMember(staff_id, email, row["added_at"], person_id))
        return Team(members, unexplained)

    async def find(self, email: str) -> str | None:
        """Return the staff id of an address; None if it is not staff."""
        return await self.by_address((await self.secrets.get()).lookup_email(email))

    async def has_anyone(self) -> bool:
        """Return whether anybody is staff."""
        return await self.accounts.database.reads.fetchrow(_SQL.anyone) is not None

    async def opened(self, staff_id: str, claim_id: str, cause: Cause) -> None:
        """Record that a member of the team opens a claim's personal data."""
        stream = opened_stream(cause.request_id, claim_id)
        event = PersonalDataOpened(staff_id=staff_id, claim_id=claim_id)
        async with self.accounts.transaction() as transaction:
            await transaction.append(Append(stream, 0, [event], cause))

    async def by_address(self, address_hash: str) -> str | None:
        """Return the staff id of an address by its keyed hash; None if it is not staff.

        By the events themselves: who can write to the table of staff is no staff for it, and
        commands that mend read models cannot ask them who may do so.
        """
        return _present((await newest_stream(self.accounts, address_hash))[1])

    async def address_hash(self, staff_id: str) -> bytes | None:
        """Return the keyed hash of the address of whoever is or was staff, by its row."""
        row = await self.accounts.database.reads.fetchrow(_SQL.staff_address, staff_id)
        return None if row is None else row["address_hash"]


async def newest_stream(
    ledger: Ledger | Transaction, email_hash: str
) -> tuple[UUID, list[Recorded]]:
    """Return the stream of an address that was not erased, with its events, if it has any."""
    erased = 0
    while True:
        stream = staff_stream(email_hash, erased)
        events = await ledger.read(stream)
        if not any(isinstance(one.event, PersonalDataErased) for one in events):
            return stream, events
        erased += 1


def _person_id(added: StaffAdded) -> str | None:
    """Return the id by which events name whoever was added; None once that is erased."""
    return None if added.email_hash is None else Person("", added.email_hash, "").person_id


def _present(events: list[Recorded]) -> str | None:
    """Return the staff id that is valid after a stream's events, if any."""
    added = _last_added(events)
    return None if added is None else added.staff_id


def _last_added(events: list[Recorded]) -> StaffAdded | None:
    """Return how somebody was added who is staff after a stream's events, if anybody is."""
    last = events[-1].event if events else None
    return last if isinstance(last, StaffAdded) else None
