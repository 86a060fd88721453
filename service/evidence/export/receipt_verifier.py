"""Verifying a receipt with nothing but the file and public keys."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from service.core.clock import timestamp
from service.evidence.checkpoint import Checkpoint
from service.evidence.demands import NO_DEMANDS, Demands
from service.evidence.export.format import (
    EventLine,
    EvidenceFault,
    Receipt,
    decode,
    decode_state,
    demanded,
    open_checkpoint,
    read_whole,
)
from service.evidence.export.included import check_event
from service.evidence.export.linked import compare_kept
from service.evidence.note import NoteKey
from service.evidence.verdict import Countersigned

BEGINS: Final = "ClaimCreated"

T = TypeVar("T")


class Proved(NamedTuple):
    """The result of a receipt: these events of a claim are in the log that the checkpoint signs.

    `events` has a mapping for each: position, version, topic, at, actor. `countersigned` has the
    required signatures of others on the checkpoint.
    """

    claim_id: str
    entity_id: str
    partner_id: str
    events: list[dict[str, Any]]
    checkpoint: Checkpoint
    countersigned: Countersigned = Countersigned()


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


def check_receipt(
    path: Path,
    keys: Sequence[NoteKey],
    kept: str | None = None,
    demands: Demands = NO_DEMANDS,
) -> Proved:
    """Return what a receipt proves; raises EvidenceFault, and OSError if it cannot be read.

    `kept` is the note of a checkpoint that the reader has from elsewhere; it has to be the
    receipt's. The receipt's checkpoint has to have the signatures of others that `demands`
    requires.
    """
    other = None if kept is None else open_checkpoint(kept, keys, "the older checkpoint")
    with path.open("rb") as file:
        receipt = decode(read_whole(file), Receipt)
    proved = proved_by(receipt, open_checkpoint(receipt.checkpoint, keys, "the checkpoint"))
    if other is not None:
        ours = proved.checkpoint
        # A receipt has no events by which it could be linked to another size or lineage.
        compare_kept(other, ours, (), {ours.size: ours.root})
    found = demanded(demands, receipt.checkpoint, proved.checkpoint.size)
    return proved._replace(countersigned=found)


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
    return Proved(created.claim_id, created.entity_id, created.partner_id, events, checkpoint)


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
