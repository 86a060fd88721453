"""Which businesses are a signed-in person's own."""

from projections.connections.reader import ConnectionsReader
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.ledger.database import Row
from service.pages.visit import signed_in


async def entities_of(request: AnyRequest, connections: ConnectionsReader) -> list[Row]:
    """Return the person's businesses (entity_id, name); raises SignInNeeded."""
    return await connections.entities_of(signed_in(request).address_hash)


async def own_entity(request: AnyRequest, connections: ConnectionsReader, entity_id: str) -> Row:
    """Return one of them; refuses with `entity_not_found` for another's as for none."""
    for row in await entities_of(request, connections):
        if row["entity_id"] == entity_id:
            return row
    raise Refusal("entity_not_found")
