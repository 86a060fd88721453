"""What stands beside a log and is part of no hash: public ids, and the dates of checkpoints."""

from datetime import datetime, timedelta
from typing import Final

from service.evidence.checkpoints.signing import CLOCKS_DIFFER_MAX
from service.evidence.verdict import Fault
from service.ledger.database import Connection, Database
from service.ledger.sql import queries

SLACK: Final = timedelta(minutes=5)
"""So much later may an event say that it happened than the checkpoint that covers it was stored."""
SECONDS_MAX: Final = 3600.0
DRAWN: Final = {
    "ApiKeyIssued": "key_id",
    "ClaimCreated": "claim_id",
    "ConnectLinkIssued": "link_id",
    "EntityRegistered": "entity_id",
    "OnboardingStarted": "onboarding_id",
    "PartnerApplied": "partner_id",
}
"""The events that draw an id that partners see, and its field."""

_SQL = queries("service.evidence.verify")


async def public_ids_fault(connection: Connection, schema: str) -> Fault | None:
    """Return the first id of an event that is missing where ids are kept unique.

    One that no event has is left: it can only be refused to somebody else, who draws another.
    """
    fields = [f'"{one}":"'.encode() for one in DRAWN.values()]
    await connection.fetchrow(_SQL.read_whole.on(schema))
    missing = await connection.fetchval(_SQL.drawn_ids.on(schema), list(DRAWN), fields)
    if missing is None:
        return None
    position = await connection.fetchval(_SQL.drawn_place.on(schema), missing)
    where = "that waits for its number" if position is None else f"at position {position}"
    return Fault(position, f"The id that the event {where} has drawn is not kept from others.")


async def misdated(database: Database, now: datetime) -> str | None:
    """Return what is wrong with the dates of stored checkpoints, if anything is.

    No signature covers them: a clock was wrong, or somebody has changed them. A date that fits
    between the others can be either.
    """
    limit = now + CLOCKS_DIFFER_MAX
    async with database.background.transaction(SECONDS_MAX) as connection:
        row = await connection.fetchrow(_SQL.misdated.on(database.schema), limit, SLACK)
    if row is None:
        return None
    size, why, count = row
    others = f", and {count - 1} more are like that" if count > 1 else ""
    return f"the checkpoint of {size} events is dated {why}{others}"
