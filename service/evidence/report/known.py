"""Whether a log has a report's subject. The log itself says so, and no read model."""

from contextlib import nullcontext

from service.evidence.checkpoint import Checkpoint
from service.evidence.report.lines import SECONDS_MAX, ReportSubject
from service.evidence.rolled_back import snapshot_of
from service.evidence.verify.soundness import as_migrated, refuse_unsound
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

_SQL = queries("service.evidence.report")


async def is_named(
    ledger: Ledger, subject: ReportSubject, checkpoint: Checkpoint | None = None
) -> bool:
    """Return whether an event names a subject.

    With a checkpoint, it returns False only of a log that is what was signed: of one in which an
    event was altered, nothing can be denied. Raises EvidenceFault.
    """
    async with (
        nullcontext() if checkpoint is None else as_migrated(ledger.database),
        snapshot_of(ledger.database, SECONDS_MAX) as connection,
    ):
        if await connection.fetchval(_SQL.is_named.on(ledger.name), *subject):
            return True
        if checkpoint is not None:
            await refuse_unsound(connection, ledger.name, checkpoint, lambda _events: None)
        return False
