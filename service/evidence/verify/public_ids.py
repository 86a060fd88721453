"""Public ids, which partners see: each one that an event has drawn is kept from others.

A process that reads a part of the log looks up the ids that its events have drawn, and reports
whether all are kept. If one may not be, one statement over all events finds the first that is not.
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
    """Return whether all of these ids are kept; each is followed by a quotation mark.

    Also return False if one of them cannot have been drawn by the service.
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
    """Return the first id of an event that is missing from the table that keeps ids unique.

    With `waiting_alone`, only events that wait for their number are checked. A kept id that no
    event has is ignored: its only effect is that another draw of it is refused.
    """
    await connection.fetchrow(_SQL.read_whole.on(schema))
    asked = ([*BEGINS], [*BEGINS.values()], ID_BYTES_MAX, waiting_alone)
    missing = await connection.fetchval(_SQL.drawn_ids.on(schema), *asked)
    if missing is None:
        return None
    position = await connection.fetchval(_SQL.drawn_place.on(schema), missing)
    where = "that waits for its number" if position is None else f"at position {position}"
    return Fault(position, f"The id that the event {where} has drawn is not kept from others.")
