"""The proof of a history: events that name an id, each proved to be in a signed log."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.export_writer import (
    BATCH_EVENTS,
    Signed,
    event_lines,
    with_proofs,
)
from service.evidence.export.format import (
    LINE_BYTES_MAX,
    EventLine,
    EvidenceFault,
    LedgerName,
    Line,
    decode,
    encode,
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


class ProofTooLarge(Exception):
    """No reader takes a proof of so many events; `fits` is how many of the newest one may have."""

    def __init__(self, fits: int) -> None:
        super().__init__(f"{fits} events fit")
        self.fits = fits


class SignedLedger(NamedTuple):
    """A ledger with events to prove, and the checkpoint that covers them."""

    ledger: Ledger
    signed: Signed


async def prove_history(
    subject: str, ledgers: Sequence[SignedLedger], named: Sequence[tuple[str, int | None]]
) -> HistoryProof:
    """Return the proof of events, each `named` by its ledger and its position, oldest first.

    What has no position is left out. The newest are read first, until they are too large for a
    file: raises ProofTooLarge then, and EvidenceFault.
    """
    parts = {
        one.ledger.name: LedgerHistory(
            ledger=one.ledger.name, events=[], checkpoint=one.signed.note
        )
        for one in ledgers
    }
    trees = [SignedTree.of(one.ledger.database, one.signed.checkpoint) for one in ledgers]
    proof = HistoryProof(format=FORMAT, subject=subject, ledgers=list(parts.values()))
    size = len(encode(proof))
    for end in range(len(named), 0, -BATCH_EVENTS):
        batch, found = named[max(0, end - BATCH_EVENTS) : end], dict[tuple[str, int], EventLine]()
        for (ledger, _), tree in zip(ledgers, trees, strict=True):
            chosen = sorted(at for name, at in batch if name == ledger.name and at is not None)
            async for lines, _ in event_lines(ledger.database, chosen):
                proved = await with_proofs(lines, tree)
                found |= {(ledger.name, line.position): line for line in proved}
        for number, (name, position) in enumerate(reversed(batch), len(named) - end):
            if position is None:
                continue
            line = found[name, position]
            # The end of a line is as long as the comma, which the last event lacks.
            size += len(encode(line)) - (not parts[name].events)
            if size > LINE_BYTES_MAX:
                raise ProofTooLarge(number)
            parts[name].events.append(line)
    for part in parts.values():
        part.events.sort(key=lambda line: line.position)
    return proof


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
