"""The findings of the background verification; nothing is signed over altered hashes."""

from datetime import datetime
from typing import Final, NamedTuple

from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.log_findings import FINDINGS, LogFinding, log_findings
from service.evidence.log_pass import noted
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

NOT_OURS: Final = (
    "what is noted of verifying the log was not written by this service; the log is verified anew"
)
GONE: Final = "the record of verifying the log is gone: nobody verifies it until it is put back"

_SQL = queries("service.evidence.checkpoints")


class Finding(NamedTuple):
    """When the whole log was last verified, and what is wrong; None if nothing is.

    If `is_ours` is false, somebody else wrote or removed the record, so it says nothing about the
    log.
    """

    verified_at: datetime | None
    position: int | None
    fault: str | None
    is_ours: bool = True


async def finding(ledger: Ledger) -> Finding:
    """Return what the verification in slices says of a ledger."""
    row = await ledger.database.reads.fetchrow(_SQL.finding)
    if row is None:
        return Finding(None, None, GONE, is_ours=False)
    kept = noted(row, ledger.name, await ledger.event_keys())
    if kept is None:
        return Finding(None, None, NOT_OURS, is_ours=False)
    return Finding(kept.finished_at, kept.fault_position, kept.fault)


async def beside_finding(ledger: Ledger) -> dict[str, LogFinding]:
    """Return what it says beside the hashes, by kind: that stops no signing."""
    rows = await ledger.database.reads.fetch(FINDINGS)
    return log_findings(rows, ledger.name, await ledger.event_keys())


async def refuse_found(ledger: Ledger) -> None:
    """Raise LedgerForked where something was found, and no later pass has found nothing."""
    found = await finding(ledger)
    if found.fault is not None and found.is_ours:
        raise LedgerForked(f"the log was altered: {found.fault}")
