"""Claims as their partners see them: in a list, and one with what has become of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from projections.claim_list.reader import ClaimListReader
from projections.connections.reader import ConnectionsReader
from service.claims.overview import WHOLE, Case, Step, case, check_whose
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
from service.facts.claims import STAGES, DocumentFlagged
from service.ledger.database import Row
from service.ledger.ledger import Ledger

_CLAIM_ID: Final = re.compile(CLAIM_ID, re.ASCII)
_WITH_FLAGS: Final = WHOLE._replace(topics=(*WHOLE.topics, DocumentFlagged))


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
        events = await self.ledger.read_part([row["stream_id"]], _WITH_FLAGS)
        check_whose(row, events)
        flags = [one.event for one in events if isinstance(one.event, DocumentFlagged)]
        found = case([one for one in events if not isinstance(one.event, DocumentFlagged)])
        state = connection_state(access.disconnected_at) | {
            "name": access.name,
            "history": [_stage(step) for step in found.history if step.what not in _NO_STAGES],
            "documents": _documents(found, {flag.document_id for flag in flags}),
            "invoices": _totals(found),
        }
        return msgspec.convert(_fields(row, state), ClaimDetail)


_NO_STAGES: Final = {"documents", "erased"}


def _stage(step: Step) -> StageReached:
    stage = STAGES[0] if step.what == "created" else step.what
    return StageReached(stage=stage, since=timestamp(step.at))


def _fields(row: Row, state: Mapping[str, Any]) -> dict[str, Any]:
    encoded = {
        "partner_invoice_ids": msgspec.json.decode(row["partner_invoice_ids"]),
        "created_at": timestamp(row["created_at"]),
    }
    return {**row, **encoded, **state}


def _documents(found: Case, flagged: set[str]) -> list[ClaimDocument]:
    return [
        ClaimDocument(
            document_id=document.document_id,
            filename=filename,
            mime_type=document.mime_type,
            size=document.size,
            status="flagged" if document.document_id in flagged else "linked",
        )
        for document, filename in found.attachments
    ]


def _totals(found: Case) -> InvoiceTotals | None:
    if not found.invoices:  # the personal data is gone: every claim has an invoice
        return None
    total = found.overview.total or Decimal(0)
    return InvoiceTotals(count=len(found.invoices), total=f"{total:.2f}")
