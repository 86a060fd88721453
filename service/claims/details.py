"""Claims as their partners see them: in a list, and one with what has become of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from projections.claim_list.reader import ClaimListReader
from projections.connections.reader import ConnectionsReader
from service.claims.wire import (
    CLAIM_ID,
    ClaimDetail,
    ClaimDocument,
    ClaimListItem,
    InvoiceTotals,
    StageReached,
)
from service.core.clock import timestamp
from service.core.errors import Refusal
from service.facts.claims import STAGES, Claim, ClaimCreated, ClaimStageChanged, fold
from service.ledger.database import Row
from service.ledger.events import Recorded
from service.ledger.ledger import Ledger

_CLAIM_ID: Final = re.compile(CLAIM_ID, re.ASCII)


def connection_state(disconnected_at: datetime | None) -> dict[str, Any]:
    """Return what an answer says of the connection to the claims' entity."""
    at = None if disconnected_at is None else timestamp(disconnected_at)
    return {"entity_disconnected": at is not None, "entity_disconnected_at": at}


def list_item(row: Row, state: Mapping[str, Any]) -> ClaimListItem:
    """Return a claim of the list: each field is the column of its name."""
    return msgspec.convert(_fields(row, state), ClaimListItem)


@dataclass(frozen=True, slots=True)
class ClaimDetails:
    """Reads single claims of one ledger: each from its stream, which is complete at once."""

    ledger: Ledger
    claims: ClaimListReader
    connections: ConnectionsReader

    async def of(self, partner_id: str, claim_id: str) -> ClaimDetail:
        """Return a claim of the partner's; refuses with `claim_not_found`, whoever's it is."""
        row = await self.claims.by_id(claim_id) if _CLAIM_ID.fullmatch(claim_id) else None
        if row is None or row["partner_id"] != partner_id:
            raise Refusal("claim_not_found")
        access = await self.connections.access(partner_id, row["entity_id"])
        past = await self.ledger.read(row["stream_id"])
        history = list(_history(past))
        claim = fold(recorded.event for recorded in past)
        state = connection_state(access.disconnected_at) | {
            "name": access.name,
            "stage": history[-1].stage,
            "history": history,
            "documents": list(_documents(claim)),
            "invoices": _totals(claim),
        }
        return msgspec.convert(_fields(row, state), ClaimDetail)


def _fields(row: Row, state: Mapping[str, Any]) -> dict[str, Any]:
    encoded = {
        "partner_invoice_ids": msgspec.json.decode(row["partner_invoice_ids"]),
        "created_at": timestamp(row["created_at"]),
    }
    return {**row, **encoded, **state}


def _history(past: Sequence[Recorded]) -> Iterator[StageReached]:
    for recorded in past:
        match recorded.event:
            case ClaimCreated():
                yield StageReached(stage=STAGES[0], since=timestamp(recorded.meta.at))
            case ClaimStageChanged(stage=stage):
                yield StageReached(stage=stage, since=timestamp(recorded.meta.at))
            case _:
                pass


def _documents(claim: Claim) -> Iterator[ClaimDocument]:
    if claim.attached is None:
        return
    flagged = {flag.document_id for flag in claim.flags}
    names = claim.attached.filenames or [None] * len(claim.attached.documents)
    for document, filename in zip(claim.attached.documents, names, strict=True):
        yield ClaimDocument(
            document_id=document.document_id,
            filename=filename,
            mime_type=document.mime_type,
            size=document.size,
            status="flagged" if document.document_id in flagged else "linked",
        )


def _totals(claim: Claim) -> InvoiceTotals | None:
    details = claim.created and claim.created.details
    if not details:
        return None
    invoices: list[dict[str, str]] = details["invoices"]
    amounts = [Decimal(one.get("total_amount_for_invoice", "0.00")) for one in invoices]
    return InvoiceTotals(count=len(invoices), total=str(sum(amounts, Decimal("0.00"))))
