"""What is stored beside a log and covered by no hash: the dates of checkpoints."""

from datetime import datetime, timedelta
from typing import Final

from service.core.counted import counted
from service.evidence.checkpoints.signing import CLOCKS_DIFFER_MAX
from service.ledger.database import Database
from service.ledger.sql import queries

SLACK: Final = timedelta(minutes=5)
"""So much later may an event say that it happened than the checkpoint that covers it was stored."""
SECONDS_MAX: Final = 3600.0

_SQL = queries("service.evidence.verify")


async def misdated(database: Database, now: datetime) -> str | None:
    """Return what is wrong with the dates of stored checkpoints, if anything is.

    No signature covers the dates. A wrong one means that a clock was wrong, or that somebody
    changed it. A date that fits between the others may still be wrong.
    """
    limit = now + CLOCKS_DIFFER_MAX
    async with database.background.transaction(SECONDS_MAX) as connection:
        row = await connection.fetchrow(_SQL.misdated.on(database.schema), limit, SLACK)
    if row is None:
        return None
    size, why, count = row
    others = f", and {counted(count - 1, 'more is', 'more are')} like that" if count > 1 else ""
    return f"the checkpoint of {counted(size, 'event')} is dated {why}{others}"
