"""Adding and removing addresses of the team."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

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
from service.ledger.events import KEY_MISSING, Cause, Recorded
from service.ledger.ledger import Ledger, Transaction
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.ledger.writing import Append
from service.people.sessions import Person

_SQL = queries("service.people")


class StaffMember(NamedTuple):
    """One of the team."""

    staff_id: str
    email: str
    added_at: datetime
    person_id: str | None


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
        stream = staff_stream(email_hash)
        drawn = self.new_id("stf", self.clock())

        async def attempt(transaction: Transaction) -> str:
            events = await transaction.read(stream)
            present = _present(events)
            if present is not None:
                return present
            keys = await transaction.data_keys([stream])
            key = keys.get(stream) or self.accounts.master_keys.new_data_key(stream)
            event = StaffAdded(staff_id=drawn, email=email, email_hash=email_hash)
            await transaction.append(
                Append(stream, len(events), [event], cause, key, new_key=stream not in keys)
            )
            return drawn

        return await self.accounts.decide(attempt)

    async def remove(self, email: str, cause: Cause) -> None:
        """Remove an address; refuses with `staff_not_found`."""
        stream = staff_stream((await self.secrets.get()).lookup_email(email))

        async def attempt(transaction: Transaction) -> None:
            events = await transaction.read(stream)
            present = _present(events)
            if present is None:
                raise Refusal("staff_not_found")
            await transaction.append(Append(stream, len(events), [StaffRemoved(present)], cause))

        await self.accounts.decide(attempt)

    async def list(self) -> list[StaffMember]:
        """Return today's staff, in the order in which they were added."""
        async with self.accounts.transaction() as transaction:
            rows = await transaction.fetch(_SQL.list)
            streams = [await transaction.read(row["stream_id"]) for row in rows]
        added = [_added(past) for past in streams]
        return [
            StaffMember(row["staff_id"], one.email or KEY_MISSING, row["added_at"], _person_id(one))
            for row, one in zip(rows, added, strict=True)
        ]

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
        return _present(await self.accounts.read(staff_stream(address_hash)))


def _added(past: list[Recorded]) -> StaffAdded:
    return [recorded.event for recorded in past if isinstance(recorded.event, StaffAdded)][-1]


def _person_id(added: StaffAdded) -> str | None:
    """Return the id by which events name whoever was added; None once that is erased."""
    return None if added.email_hash is None else Person("", added.email_hash, "").person_id


def _present(events: list[Recorded]) -> str | None:
    """Return the staff id that is valid after a stream's events, if any."""
    last = events[-1].event if events else None
    return last.staff_id if isinstance(last, StaffAdded) else None
