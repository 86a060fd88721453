"""Access: does the entity exist, and is the partner connected to it."""

from service.core.errors import Refusal
from service.facts.access import Access
from service.ledger.database import Reader, Row
from service.ledger.ledger import Transaction
from service.ledger.service_keys import lookup_bytes
from service.ledger.sql import queries

_SQL = queries("projections.connections")


def access_from(row: Row | None) -> Access:
    """Read what writes are decided on; refuses with `entity_not_found` where there is no entity."""
    if row is None or row["entity_id"] is None:
        raise Refusal("entity_not_found")
    return Access(
        row["entity_id"],
        row["name"],
        row["established"],
        row["version"] or 0,
        row["connected_at"],
        row["disconnected_at"],
    )


async def access(transaction: Transaction, partner_id: str, entity_id: str) -> Access:
    """Return the access of a partner to an entity, as this transaction sees it."""
    return _known(await transaction.fetchrow(_SQL.state, partner_id, entity_id))


async def is_established(
    transaction: Transaction, email_hash: str | None, company_number_hash: str | None
) -> bool:
    """Return whether a business that uses the service has this address or this company number."""
    row = await transaction.fetchrow(
        _SQL.established, lookup_bytes(email_hash), lookup_bytes(company_number_hash)
    )
    return row is not None and row["taken"]


class ConnectionsReader(Reader):
    """Reads `entities` and `connections` of one ledger."""

    async def access(self, partner_id: str, entity_id: str) -> Access:
        """Return a partner's access to an entity; refuses with `entity_not_found`."""
        return _known(await self._reads.fetchrow(_SQL.state, partner_id, entity_id))

    async def connections(self, entity_id: str) -> list[Row]:
        """Return everyone an entity is or was connected to."""
        return await self._reads.fetch(_SQL.entity_connections, entity_id)

    async def entities_of(self, address_hash: str) -> list[Row]:
        """Return the businesses of a person, by the keyed hash of the email address."""
        return await self._reads.fetch(_SQL.entities_of, bytes.fromhex(address_hash))

    async def entities_asked(self, address_hash: str, partner_id: str) -> list[Row]:
        """Return the businesses of a person, and since when each is connected to a partner."""
        return await self._reads.fetch(_SQL.entities_asked, bytes.fromhex(address_hash), partner_id)

    async def address_hash(self, entity_id: str) -> bytes | None:
        """Return the keyed hash of the email address of a business's person, if it is known."""
        row = await self._reads.fetchrow(_SQL.address, entity_id)
        return None if row is None else row["email_hash"]


def _known(row: Row | None) -> Access:
    """Read a row of the query `state`; refuses with `entity_not_found` where there is none."""
    known = access_from(row)
    return known if row is None else known._replace(erased=row["erased"])
