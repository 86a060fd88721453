"""Verifying a receipt with nothing but the file and public keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from service.core.clock import timestamp
from service.evidence.checkpoint import Checkpoint
from service.evidence.export.format import (
    EventLine,
    EvidenceFault,
    Receipt,
    decode,
    decode_state,
    open_checkpoint,
)
from service.evidence.export.included import check_event
from service.evidence.note import NoteKey

BEGINS: Final = "ClaimCreated"

T = TypeVar("T")


class Proved(NamedTuple):
    """The result of a receipt: these events of a claim are in the log that the checkpoint signs.

    `events` has a mapping for each: position, version, topic, at, actor. `note` is the
    checkpoint's.
    """

    claim_id: str
    entity_id: str
    partner_id: str
    events: list[dict[str, Any]]
    checkpoint: Checkpoint
    note: str


_AT: Final = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z\Z"


class _Meta(msgspec.Struct):
    at: Annotated[str, msgspec.Meta(pattern=_AT)]
    actor: str

    def happened(self) -> datetime:
        """Return when the event happened; raises ValueError for no such day or hour."""
        return datetime.fromisoformat(self.at)


class _Created(msgspec.Struct):
    claim_id: str
    entity_id: str
    partner_id: str


class _State(msgspec.Struct):
    meta: _Meta
    data: msgspec.Raw


def check_receipt(raw: bytes, keys: Sequence[NoteKey]) -> Proved:
    """Return what a file proves; raises EvidenceFault."""
    receipt = decode(raw, Receipt)
    return proved_by(receipt, open_checkpoint(receipt.checkpoint, keys, "the checkpoint"))


def proved_by(receipt: Receipt, checkpoint: Checkpoint) -> Proved:
    """Return what a receipt proves under a trusted checkpoint; raises EvidenceFault."""
    if checkpoint.ledger != receipt.ledger:
        raise EvidenceFault(None, "receipt and checkpoint are not of the same ledger")
    if not receipt.events:
        raise EvidenceFault(None, "the receipt has no event")
    last = 0
    for event in receipt.events:
        check_event(event, last, checkpoint)
        last = event.position
    stream, drawn = receipt.events[0].originator_id, 0
    for version, event in enumerate(receipt.events, 1):
        if (event.originator_id, event.originator_version) != (stream, version):
            raise EvidenceFault(event.position, "the events are not one stream from its beginning")
        if event.append_id <= drawn:
            raise EvidenceFault(event.position, "the event was appended before the one it follows")
        drawn = event.append_id
    states = [_state(event) for event in receipt.events]
    created = _decoded(states[0].data, _Created, receipt.events[0].position)
    if receipt.events[0].topic != BEGINS or created.claim_id != receipt.claim_id:
        raise EvidenceFault(receipt.events[0].position, f"{receipt.claim_id} does not begin here")
    events = [
        {
            "position": event.position,
            "version": event.originator_version,
            "topic": event.topic,
            "at": timestamp(state.meta.happened()),
            "actor": state.meta.actor,
        }
        for event, state in zip(receipt.events, states, strict=True)
    ]
    return Proved(
        created.claim_id,
        created.entity_id,
        created.partner_id,
        events,
        checkpoint,
        receipt.checkpoint,
    )


def _state(event: EventLine) -> _State:
    try:
        state = decode_state(event.state, _State)
        state.meta.happened()
    except (ValueError, RecursionError) as error:
        raise EvidenceFault(event.position, f"not an event of a claim: {error}") from None
    return state


def _decoded(raw: msgspec.Raw, kind: type[T], position: int) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError) as error:
        raise EvidenceFault(position, f"not an event of a claim: {error}") from None
