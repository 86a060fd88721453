"""The ids that partners see: each that an event has drawn is kept from others.

Whoever reads a log in parts looks up what their events have drawn, and tells whether all are kept.
Where one may not be, one statement over all events finds the first that is not.
"""

from typing import Final

from service.evidence.verdict import Fault
from service.ledger.database import Connection
from service.ledger.sql import queries

DRAWN: Final = {
    "ApiKeyIssued": "key_id",
    "ClaimCreated": "claim_id",
    "ConnectLinkIssued": "link_id",
    "EntityRegistered": "entity_id",
    "OnboardingStarted": "onboarding_id",
    "PartnerApplied": "partner_id",
}
"""The events that draw an id that partners see, and its field."""
BEGINS: Final = {topic: f'"{field}":"'.encode() for topic, field in DRAWN.items()}
"""What an id follows in the state of such an event. It is JSON, whose strings have no bare
quotation mark: the id ends before the next one."""
ID_BYTES_MAX: Final = 80

_SQL = queries("service.evidence.verify")


async def are_kept(connection: Connection, schema: str, ids: bytes) -> bool:
    """Return whether each id is kept, of which each has a quotation mark behind it.

    False, too, for one that no service has drawn.
    """
    if not ids:
        return True
    joined = ids[:-1].decode("latin-1")
    if not joined.isascii() or not joined.isprintable() or "\\" in joined:
        return False
    kept = await connection.fetchval(_SQL.kept_ids.on(schema), joined)
    return kept == len(set(joined.split('"')))


async def public_ids_fault(
    connection: Connection, schema: str, *, waiting_alone: bool
) -> Fault | None:
    """Return the first id of an event that is missing where ids are kept unique.

    Only of those events that wait for their number where `waiting_alone`. An id that no event has
    is left: it can only be refused to somebody else, who draws another.
    """
    await connection.fetchrow(_SQL.read_whole.on(schema))
    asked = ([*BEGINS], [*BEGINS.values()], ID_BYTES_MAX, waiting_alone)
    missing = await connection.fetchval(_SQL.drawn_ids.on(schema), *asked)
    if missing is None:
        return None
    position = await connection.fetchval(_SQL.drawn_place.on(schema), missing)
    where = "that waits for its number" if position is None else f"at position {position}"
    return Fault(position, f"The id that the event {where} has drawn is not kept from others.")
