"""The address of a person whom an event names by their id alone.

No address is kept for it. A session's row has the keyed look-up of its person's address, from which
their id follows; the events of whatever they belong to have the address itself: the service's team,
a partner's, or a business. Both are checked, so that no row has anything sent elsewhere.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from projections.connections.reader import REGISTRATION_BYTES_MAX, ConnectionsReader
from projections.partners.reader import PartnersReader
from service.facts.entities import EntityRegistered, entity_stream
from service.facts.partners import Partner
from service.facts.people import StaffAdded, person_id
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.ledger.transaction import StreamPart
from service.people.staff import newest_stream

_BEGINS: Final = StreamPart((EntityRegistered,), 1, REGISTRATION_BYTES_MAX, 1)

_SQL = queries("service.people")


@dataclass(frozen=True, slots=True)
class Addresses:
    """Finds addresses in the ledgers of accounts and live mode."""

    accounts: Ledger
    secrets: ServiceKeyStore
    partners: PartnersReader
    partner_of: Callable[[str], Awaitable[Partner]]
    live: Ledger
    businesses: ConnectionsReader

    async def of(self, whose: str) -> str | None:
        """Return the address of a person; None if they belong to nothing, or signed in long ago."""
        row = await self.accounts.database.reads.fetchrow(_SQL.session_last, whose)
        address_hash = row["address_hash"].hex() if row else ""
        if person_id(address_hash) != whose:
            return None
        secrets = await self.secrets.get()
        async for email in self._known(address_hash):
            if email is not None and secrets.lookup_email(email) == address_hash:
                return email
        return None

    async def _known(self, address_hash: str) -> AsyncIterator[str | None]:
        """Return the addresses of whatever has this look-up."""
        for one in (await newest_stream(self.accounts, address_hash))[1]:
            if isinstance(one.event, StaffAdded):
                yield one.event.email
        for row in await self.partners.partners_of(address_hash):
            for member in (await self.partner_of(row["partner_id"])).members.values():
                if member.email_hash == address_hash:
                    yield member.email
        rows = await self.businesses.entities_of(address_hash)
        streams = [entity_stream(self.live.name, row["entity_id"]) for row in rows]
        for one in await self.live.read_part(streams[:1], _BEGINS):  # each has the same address
            if isinstance(one.event, EntityRegistered):
                yield one.event.email
