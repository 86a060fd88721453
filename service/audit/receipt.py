"""Writing a receipt: a claim's events, each with the proof that it is in the log."""

import asyncio
from collections.abc import Callable
from typing import Final
from uuid import UUID

from service.audit.evidence import EvidenceFault, Receipt, event_line
from service.audit.export import READ_SECONDS_MAX, Signed, cut_proofs, with_proof
from service.audit.proofs import ProofCutter
from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer
from service.ledger.sql import Sql

NUMBERING_SECONDS_MAX: Final = 30.0
"""How long a claim's events may take to get their numbers; another process may be at it."""
_REST_SECONDS: Final = 0.05

_EVENTS = Sql("service.audit", "receipt_events")


async def numbered_stream(ledger: Ledger, stream_id: UUID) -> list[Row]:
    """Answer a stream's rows once all of them have positions, numbering them where needed.

    Raises EvidenceFault where that takes too long, because an earlier transaction stays open.
    """
    sequencer = Sequencer(ledger.database)
    for _ in range(int(NUMBERING_SECONDS_MAX / _REST_SECONDS)):
        rows = await ledger.database.fetch(_EVENTS, stream_id, deadline=READ_SECONDS_MAX)
        if all(row["position"] for row in rows):
            return rows
        if not await sequencer.step():
            await asyncio.sleep(_REST_SECONDS)
    raise EvidenceFault(None, "the claim's events have not been numbered in time; try again")


async def make_receipt(
    ledger: Ledger,
    claim_id: str,
    rows: list[Row],
    signed: Signed,
    advance: Callable[[int], object],
) -> Receipt:
    """Answer the receipt of a claim; `rows` are its stream, all under the checkpoint.

    `advance` is told how many positions of the log were passed. Raises EvidenceFault where the log
    does not make the checkpoint's root.
    """
    checkpoint = signed.checkpoint
    cutter = ProofCutter(checkpoint.size, [row["position"] - 1 for row in rows])
    await cut_proofs(ledger.database, checkpoint, cutter, advance)
    return Receipt(
        format="claim-ledger receipt v1",
        ledger=ledger.name,
        claim_id=claim_id,
        events=[with_proof(event_line(row, row["position"]), cutter) for row in rows],
        checkpoint=signed.note,
    )
