"""What the verification of the log in slices has found: nothing is signed over it."""

from datetime import datetime
from typing import Final, NamedTuple

from service.evidence.checkpoints.log_tree import LedgerForked
from service.ledger.database import Database
from service.ledger.sql import queries

_SQL = queries("service.evidence.checkpoints")


class Finding(NamedTuple):
    """When the whole log was last verified, and what is wrong; None where nothing is."""

    verified_at: datetime | None
    position: int | None
    fault: str | None


NO_FINDING: Final = Finding(None, None, None)


async def finding(database: Database) -> Finding:
    """Return what the verification in slices says of a ledger."""
    row = await database.reads.fetchrow(_SQL.finding)
    return NO_FINDING if row is None else Finding(*row)


async def refuse_found(database: Database) -> None:
    """Raise LedgerForked where something was found, and no later pass has found nothing."""
    found = await finding(database)
    if found.fault is not None:
        raise LedgerForked(f"the log was altered: {found.fault}")
