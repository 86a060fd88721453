"""Writing a receipt: a claim's events, each with the proof that it is in the log."""

from typing import Final
from uuid import UUID

import msgspec

from service.evidence.export.concerning import SEARCH_SECONDS_MAX
from service.evidence.export.export_writer import Signed, with_proofs
from service.evidence.export.format import EvidenceFault, Receipt, event_line
from service.evidence.export.receipt_verifier import BEGINS, proved_by
from service.evidence.tree.signed_tree import SignedTree
from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer, SequencingTimeout
from service.ledger.sql import queries

NUMBERING_SECONDS_MAX: Final = 30.0
"""How long a claim's events may take to get their numbers; another process may be at it."""
_ATTEMPTS_MAX: Final = 10
"""A claim can get another event while the others are being numbered."""

_SQL = queries("service.evidence.export")


async def begins(ledger: Ledger, stream_id: UUID, claim_id: str) -> bool:
    """Return whether a stream begins this claim by its events: a read model may be wrong."""
    rows = await _stream(ledger, stream_id)
    if not rows or rows[0]["topic"] != BEGINS:
        return False
    try:
        return msgspec.json.decode(rows[0]["state"])["data"]["claim_id"] == claim_id
    except (KeyError, RecursionError, TypeError, ValueError):
        return False


async def _stream(ledger: Ledger, stream_id: UUID) -> list[Row]:
    return await ledger.database.background.fetch(_SQL.claim_events, stream_id)


async def find_claim(ledger: Ledger, claim_id: str) -> UUID | None:
    """Search all events for the stream of a claim; None: there is none."""
    async with ledger.database.background.transaction(SEARCH_SECONDS_MAX) as connection:
        rows = await connection.fetch(_SQL.claim_streams.on(ledger.name), claim_id)
    for row in rows:
        if await begins(ledger, row["originator_id"], claim_id):
            return row["originator_id"]
    return None


async def numbered_stream(ledger: Ledger, stream_id: UUID) -> list[Row]:
    """Return a stream's rows once all of them have positions.

    Raises SequencingTimeout, and EvidenceFault where one will never have a position.
    """
    for _ in range(_ATTEMPTS_MAX):
        rows = await _stream(ledger, stream_id)
        unnumbered = [row for row in rows if not row["position"]]
        if not unnumbered:
            return rows
        if not all(row["waits"] for row in unnumbered):
            raise EvidenceFault(None, "an event of the claim is in neither log nor queue")
        await Sequencer(ledger).number_committed(NUMBERING_SECONDS_MAX)
    raise SequencingTimeout("the claim's events wait for their numbers")


async def make_receipt(ledger: Ledger, claim_id: str, rows: list[Row], signed: Signed) -> Receipt:
    """Return the receipt of a claim; `rows` are its stream, covered by the checkpoint.

    Raises EvidenceFault if the log does not make the checkpoint's root, or if a check of the
    receipt would fail for any other reason.
    """
    lines = [event_line(row, row["position"]) for row in rows]
    events = await with_proofs(lines, SignedTree.of(ledger.database, signed.checkpoint))
    receipt = Receipt(
        format="claim-ledger receipt v1",
        ledger=ledger.name,
        claim_id=claim_id,
        events=events,
        checkpoint=signed.note,
    )
    proved_by(receipt, signed.checkpoint)
    return receipt
