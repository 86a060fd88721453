"""Claims as the people they are made for see them: who owes, how much, what has happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple
from uuid import UUID

from service.core.errors import Refusal
from service.facts.claims import ClaimCreated, ClaimStageChanged, Document, DocumentsAttached
from service.facts.privacy import PersonalDataErased
from service.ledger.database import Row
from service.ledger.events import Recorded
from service.ledger.ledger import Ledger
from service.ledger.transaction import StreamPart

_LISTED: Final = StreamPart((ClaimCreated,), versions_max=1, bytes_max=64 << 10, events_max=100)
WHOLE: Final = StreamPart(
    (ClaimCreated, DocumentsAttached, ClaimStageChanged, PersonalDataErased),
    versions_max=10_000,
    bytes_max=4 << 20,
    events_max=500,
)
"""Far more than a claim has of these; replays that differ are no part of it, however many."""


class Overview(NamedTuple):
    """A claim in a line. `debtor` is None where the personal data is gone.

    `total` is that of the invoices with an amount; None where none has one.
    """

    debtor: str | None
    invoices: int
    total: Decimal | None


class InvoiceLine(NamedTuple):
    """An invoice of a claim; `due_date` as the partner gave it, `2026-02-04`."""

    number: str | None
    due_date: str | None
    amount: Decimal | None


class Attachment(NamedTuple):
    """A document of a claim; `filename` is None where the personal data is gone."""

    document: Document
    filename: str | None


class Step(NamedTuple):
    """Something that happened to a claim: `created`, `documents`, `erased`, or a stage."""

    what: str
    at: datetime


class Case(NamedTuple):
    """A claim with its invoices, its documents and its history, oldest first."""

    overview: Overview
    invoices: Sequence[InvoiceLine]
    attachments: Sequence[Attachment]
    history: Sequence[Step]


@dataclass(frozen=True, slots=True)
class ClaimOverviews:
    """Reads claims' own streams, where the personal data is: never a read model's."""

    ledger: Ledger

    async def listed(
        self, streams: Sequence[UUID], partner_id: str, entity_id: str
    ) -> Mapping[str, Overview]:
        """Return claims of a connection by their ids; one with hundreds of invoices is left out."""
        events = await self.ledger.read_part(streams, _LISTED)
        created = [one.event for one in events if isinstance(one.event, ClaimCreated)]
        return {
            one.claim_id: overview(one)
            for one in created
            if (one.partner_id, one.entity_id) == (partner_id, entity_id)
        }

    async def one(self, row: Row) -> Case:
        """Return one claim; refuses as `check_whose` does."""
        events = await self.ledger.read_part([row["stream_id"]], WHOLE)
        check_whose(row, events)
        return case(events)


def check_whose(row: Row, events: Sequence[Recorded]) -> None:
    """Refuse with `claim_not_found` where events are not those of the claim of a row.

    A read model named their stream, and whose the claim is: only the event that made it decides.
    """
    created = next((one.event for one in events if isinstance(one.event, ClaimCreated)), None)
    whose = ("claim_id", "partner_id", "entity_id")
    if created is None or any(getattr(created, name) != row[name] for name in whose):
        raise Refusal("claim_not_found")


def overview(created: object) -> Overview:
    """Return a claim's line, from what created it."""
    details = _details(created)
    invoices = _invoices(details)
    amounts = [one.amount for one in invoices if one.amount is not None]
    debtor = details.get("defendant", {}).get("name")
    return Overview(debtor, len(invoices), sum(amounts, Decimal()) if amounts else None)


def case(events: Sequence[Recorded]) -> Case:
    """Return a claim from the events of its stream."""
    created = next((one.event for one in events if _is_first(one)), None)
    attached = [one.event for one in events if isinstance(one.event, DocumentsAttached)]
    return Case(
        overview(created),
        _invoices(_details(created)),
        [one for event in attached for one in _attachments(event)],
        [Step(_what(one.event), one.meta.at) for one in events],
    )


def _is_first(recorded: Recorded) -> bool:
    return isinstance(recorded.event, ClaimCreated)


def _details(created: object) -> dict[str, Any]:
    return (created.details or {}) if isinstance(created, ClaimCreated) else {}


def _invoices(details: Mapping[str, Any]) -> list[InvoiceLine]:
    return [
        InvoiceLine(
            one.get("number"), one.get("due_date"), _amount(one.get("total_amount_for_invoice"))
        )
        for one in details.get("invoices", ())
    ]


def _amount(text: str | None) -> Decimal | None:
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation:  # an event of a release that took other texts
        return None


def _attachments(event: DocumentsAttached) -> list[Attachment]:
    names = event.filenames or [None] * len(event.documents)
    return [Attachment(*pair) for pair in zip(event.documents, names, strict=True)]


def _what(event: object) -> str:
    match event:
        case ClaimStageChanged():
            return event.stage
        case DocumentsAttached():
            return "documents"
        case PersonalDataErased():
            return "erased"
        case _:
            return "created"
