"""Facts about claims, and the state folded from them."""

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Literal
from uuid import UUID

import msgspec

from service.core.ids import stream_id
from service.facts.privacy import PersonalDataErased
from service.ledger.events import Event

STAGES: Final = (
    "triage",
    "awaiting_information",
    "letter_before_action",
    "negotiation",
    "proceedings",
    "judgment",
    "enforcement",
    "settled",
    "withdrawn",
    "closed",
)
"""The stages a claim can be in, `triage` first (readings: a documented list in one place)."""


class ClaimCreated(Event, frozen=True):
    """A partner created a claim for an entity.

    `details` holds the personal fields of the request (contract 2.5): defendant, invoices,
    contract_date, is_written. `fingerprint` is a keyed hash of the decoded body, of the fields that
    `fingerprint_version` of the request's shape has (service/facts/replays.py).
    """

    personal: ClassVar = ("details",)
    claim_id: str
    partner_id: str
    entity_id: str
    partner_claim_id: str
    fingerprint: str
    fingerprint_version: int = 1
    partner_user_id: str | None = None
    partner_invoice_ids: list[str] = msgspec.field(default_factory=list[str])
    details: dict[str, Any] | None = None


class Document(msgspec.Struct, frozen=True):
    """An upload as it was in storage when a claim was linked to it."""

    document_id: str
    storage_path: str
    mime_type: str
    size: int
    generation: int
    crc32c: str


class DocumentsAttached(Event, frozen=True):
    """Uploads were linked to a new claim, with what is needed to detect a later change.

    `filenames` are the partner's names for them, in the order of `documents`.
    """

    personal: ClassVar = ("filenames",)
    claim_id: str
    documents: list[Document]
    filenames: list[str] | None = None


class DocumentFlagged(Event, frozen=True):
    """A document's content is not what was declared, or a scanner found it malicious.

    `reason` is `type_mismatch` or `malware`; `detail` is the type that its first bytes show, or
    what the scanner calls its finding. Recorded once for each document and reason.
    """

    claim_id: str
    document_id: str
    reason: str
    detail: str


class FirstMessagePosted(Event, frozen=True):
    """A claim's first message was posted; it starts automated processing (contract section 1)."""

    personal: ClassVar = ("text",)
    claim_id: str
    message_id: str
    partner_id: str
    entity_id: str
    text: str | None = None


class ClaimStageChanged(Event, frozen=True):
    """The service's team moved a claim to another stage."""

    claim_id: str
    stage: str


class ClaimReplayMismatched(Event, frozen=True):
    """A replay had a different body. It changed nothing, and is recorded once for each body."""

    claim_id: str
    fingerprint: str


Personal = Literal["readable", "erased", "key missing"]
"""What became of a subject's personal data. A key is missing where no erasure says that it went."""


class Claim(msgspec.Struct, frozen=True):
    """A claim's state, folded from its stream. `claim_id` empty: there is none.

    An erased claim still moves through its stages: only its personal data is gone.
    """

    claim_id: str = ""
    version: int = 0
    stage: str = ""
    created: ClaimCreated | None = None
    message: FirstMessagePosted | None = None
    attached: DocumentsAttached | None = None
    flags: tuple[DocumentFlagged, ...] = ()
    erased: bool = False

    @property
    def personal(self) -> Personal:
        """Whether the claim's personal fields could be read, and why not."""
        if self.erased:
            return "erased"
        has_details = self.created is not None and self.created.details is not None
        return "readable" if has_details else "key missing"


def claim_stream(
    mode: str, epoch: int, partner_id: str, entity_id: str, partner_claim_id: str
) -> UUID:
    """Derive a claim's stream from its natural key (decision 1, contract 4.4)."""
    return stream_id("claim", mode, str(epoch), partner_id, entity_id, partner_claim_id)


def fold(events: Iterable[Event]) -> Claim:
    """Fold a claim's stream into its state."""
    state = Claim()
    for event in events:
        state = msgspec.structs.replace(_evolve(state, event), version=state.version + 1)
    return state


def _evolve(state: Claim, event: Event) -> Claim:
    change = msgspec.structs.replace
    match event:
        case ClaimCreated():
            return change(state, claim_id=event.claim_id, stage=STAGES[0], created=event)
        case DocumentsAttached():
            return change(state, attached=event)
        case DocumentFlagged():
            return change(state, flags=(*state.flags, event))
        case FirstMessagePosted():
            return change(state, message=event)
        case ClaimStageChanged():
            return change(state, stage=event.stage)
        case PersonalDataErased():
            return change(state, erased=True)
        case _:
            raise TypeError(f"{type(event).__name__} is not a fact about a claim")
