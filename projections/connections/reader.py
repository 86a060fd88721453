"""Access: does the entity exist, and is the partner connected to it.

A connection is what the last event of its stream says, if this service wrote that.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from service.core.errors import Refusal
from service.facts.access import Access
from service.facts.connections import EntityConnected, connection_stream
from service.facts.entities import EntityRegistered, entity_stream
from service.ledger.binding import Binding
from service.ledger.codec import stored_form
from service.ledger.database import Reader, Row
from service.ledger.ledger import Ledger
from service.ledger.service_keys import lookup_bytes
from service.ledger.sql import queries
from service.ledger.transaction import StreamPart, Transaction

_SQL = queries("projections.connections")

REGISTRATION_BYTES_MAX: Final = 64 << 10
"""Of the event that registers a business; real ones have some hundred."""


def access_from(row: Row | None, connection: UUID, binding: Binding) -> Access:
    """Read what writes are decided on, given the connection's stream.

    Refuses with `entity_not_found` where there is no entity. Raises UnboundEvent where another than
    this service wrote the connection's last event.
    """
    if row is None or row["entity_id"] is None:
        raise Refusal("entity_not_found")
    known = Access(row["entity_id"], row["name"], row["established"])
    binding = binding.placed([(row["connection_id"], row["connection_position"])])
    if row["version"] is None:
        return known
    topic, state = row["topic"], row["state"]
    binding.check(row["connection_id"], connection, row["version"], topic, state, row["mac"])
    meta = stored_form(state).meta
    return known._replace(
        version=row["version"],
        connected=topic == EntityConnected.__name__,
        changed_at=meta.at,
        changed_by=meta.actor,
    )


async def access(transaction: Transaction, partner_id: str, entity_id: str) -> Access:
    """Return the access of a partner to an entity, as this transaction sees it."""
    connection = connection_stream(transaction.ledger_name, partner_id, entity_id)
    binding = transaction.binding
    row = await transaction.fetchrow(_SQL.state, connection, entity_id, binding.retired)
    return _known(row, connection, binding)


async def is_established(
    transaction: Transaction, email_hash: str | None, company_number_hash: str | None
) -> bool:
    """Return whether a business that uses the service has this address or this company number."""
    row = await transaction.fetchrow(
        _SQL.established, lookup_bytes(email_hash), lookup_bytes(company_number_hash)
    )
    return row is not None and row["taken"]


class ConnectionsReader(Reader):
    """Reads `entities`, `connections` and connections' events of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger.database)
        self._ledger = ledger

    async def access(self, partner_id: str, entity_id: str) -> Access:
        """Return a partner's access to an entity; refuses with `entity_not_found`."""
        connection = connection_stream(self._ledger.name, partner_id, entity_id)
        binding = await self._ledger.binding()
        row = await self._reads.fetchrow(_SQL.state, connection, entity_id, binding.retired)
        return _known(row, connection, binding)

    async def connections(self, entity_id: str) -> list[Row]:
        """Return everyone an entity is or was connected to."""
        return await self._reads.fetch(_SQL.entity_connections, entity_id)

    async def entities_of(self, address_hash: str) -> list[Row]:
        """Return the businesses of a person, by the keyed hash of the email address."""
        rows = await self._reads.fetch(_SQL.entities_of, bytes.fromhex(address_hash))
        return await self._owned(rows, address_hash)

    async def entities_asked(self, address_hash: str, partner_id: str) -> list[Row]:
        """Return the businesses of a person, and since when each is connected to a partner."""
        hashed = bytes.fromhex(address_hash)
        rows = await self._reads.fetch(_SQL.entities_asked, hashed, partner_id)
        return await self._owned(rows, address_hash)

    async def _owned(self, rows: Sequence[Row], address_hash: str) -> list[Row]:
        """Return those of the businesses that the events that registered them say are theirs."""
        streams = [entity_stream(self._ledger.name, row["entity_id"]) for row in rows]
        begins = StreamPart((EntityRegistered,), 1, REGISTRATION_BYTES_MAX, len(rows))
        owned = {
            one.stream_id
            for one in await self._ledger.read_part(streams, begins)
            if isinstance(one.event, EntityRegistered) and one.event.email_hash == address_hash
        }
        return [row for row, stream in zip(rows, streams, strict=True) if stream in owned]

    async def address_hash(self, entity_id: str) -> bytes | None:
        """Return the keyed hash of the email address of a business's person, if it is known."""
        row = await self._reads.fetchrow(_SQL.address, entity_id)
        return None if row is None else row["email_hash"]


def _known(row: Row | None, connection: UUID, binding: Binding) -> Access:
    """Read a row of the query `state`; refuses with `entity_not_found` where there is none."""
    known = access_from(row, connection, binding)
    return known if row is None else known._replace(erased=row["erased"])
