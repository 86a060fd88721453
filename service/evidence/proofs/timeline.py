"""The proof of a history: events that name an id, each proved to be in a signed log."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.export_writer import Signed, event_lines, with_proofs
from service.evidence.export.format import (
    EventLine,
    EvidenceFault,
    LedgerName,
    Line,
    decode,
    open_checkpoint,
)
from service.evidence.export.included import check_event
from service.evidence.note import NoteKey
from service.evidence.tree.signed_tree import SignedTree
from service.ledger.ledger import Ledger

FORMAT: Final = "claim-ledger history v1"


class LedgerHistory(Line, frozen=True):
    """The events of one ledger, and the checkpoint that proves them."""

    ledger: LedgerName
    events: list[EventLine]
    checkpoint: str


class HistoryProof(Line, frozen=True):
    """The whole file: events that name an id, or that a request caused."""

    format: Literal["claim-ledger history v1"]
    subject: str
    ledgers: list[LedgerHistory]


class ProvedHistory(NamedTuple):
    """The result: the events of each part are in the log that its checkpoint signs."""

    line: HistoryProof
    parts: Sequence[tuple[Checkpoint, LedgerHistory]]


async def prove_events(ledger: Ledger, positions: Sequence[int], signed: Signed) -> LedgerHistory:
    """Return the events at rising positions with their proofs; raises EvidenceFault."""
    tree, events = SignedTree.of(ledger.database, signed.checkpoint), list[EventLine]()
    async for lines, _ in event_lines(ledger.database, positions):
        events += await with_proofs(lines, tree)
    return LedgerHistory(ledger=ledger.name, events=events, checkpoint=signed.note)


def check_history(raw: bytes, keys: Sequence[NoteKey]) -> ProvedHistory:
    """Return what a file proves; raises EvidenceFault."""
    line = decode(raw, HistoryProof)
    names = [part.ledger for part in line.ledgers]
    if not names or len(set(names)) != len(names):
        raise EvidenceFault(None, "each ledger once, and at least one")
    needle = msgspec.json.encode(line.subject).decode()
    parts = [(_opened(part, keys), part) for part in line.ledgers]
    for checkpoint, part in parts:
        _check(part, checkpoint, needle)
    return ProvedHistory(line, parts)


def _opened(part: LedgerHistory, keys: Sequence[NoteKey]) -> Checkpoint:
    checkpoint = open_checkpoint(part.checkpoint, keys, "the checkpoint")
    if checkpoint.ledger != part.ledger or not part.events:
        raise EvidenceFault(None, "events and checkpoint are not of the same ledger")
    return checkpoint


def _check(part: LedgerHistory, checkpoint: Checkpoint, needle: str) -> None:
    last = 0
    for event in part.events:
        check_event(event, last, checkpoint)
        if needle not in event.state:
            raise EvidenceFault(event.position, "the event does not name the id")
        last = event.position
