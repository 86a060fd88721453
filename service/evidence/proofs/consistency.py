"""The proof that a log continues an older one: two checkpoints, and the proof between them."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from service.evidence.authorisation import Lineage
from service.evidence.checkpoint import Checkpoint
from service.evidence.export.export_writer import Signed, with_proofs
from service.evidence.export.format import (
    EventLine,
    EvidenceFault,
    HashText,
    LedgerName,
    Line,
    decode,
    event_line,
    open_checkpoint,
    to_hashes,
    to_texts,
)
from service.evidence.export.included import check_event
from service.evidence.export.linked import check_linked, lineage_begun
from service.evidence.note import NoteKey
from service.evidence.tree.signed_tree import SignedTree
from service.facts.lineages import LineageBegun, lineage_stream
from service.ledger.ledger import Ledger
from service.ledger.merkle import is_consistent
from service.ledger.sql import queries

_SQL = queries("service.evidence.export")

FORMAT: Final = "claim-ledger consistency v1"


class ConsistencyProof(Line, frozen=True, kw_only=True):
    """The whole file; `lineages` is there if the checkpoints are of two origins."""

    format: Literal["claim-ledger consistency v1"]
    ledger: LedgerName
    older: str
    proof: list[HashText]
    lineages: list[EventLine] | None = None
    checkpoint: str


class Continued(NamedTuple):
    """The result: the log of `checkpoint` begins with all events of the log of `older`."""

    line: ConsistencyProof
    older: Checkpoint
    checkpoint: Checkpoint
    lineages: Sequence[Lineage]


async def make_consistency(
    ledger: Ledger,
    older: Signed,
    newer: Signed,
    keys: Sequence[NoteKey],
    *,
    made_max: int | None = None,
) -> ConsistencyProof:
    """Return the proof; `keys` are those that checks of the file will know.

    Raises EvidenceFault if the log is not that of both checkpoints; with `made_max`, NodesBehind as
    SignedTree does.
    """
    old, new = older.checkpoint, newer.checkpoint
    if old.size > new.size:
        message = f"the older checkpoint counts {old.size} events; the other one has {new.size}"
        raise EvidenceFault(new.size + 1, message)
    tree, lineages = SignedTree.of(ledger.database, new, made_max), None
    proof = await tree.consistency_proof(old.size)
    if old.origin != new.origin:
        stream = lineage_stream(ledger.name)
        rows = await ledger.database.background.fetch(_SQL.claim_events, stream)
        covered = [row for row in rows if row["position"] and row["position"] <= new.size]
        lines = [event_line(row, row["position"]) for row in covered]
        lineages = await with_proofs(lines, tree)
    made = ConsistencyProof(
        format=FORMAT,
        ledger=ledger.name,
        older=older.note,
        proof=to_texts(proof),
        lineages=lineages,
        checkpoint=newer.note,
    )
    _continued(made, old, new, keys)
    return made


def check_consistency(raw: bytes, keys: Sequence[NoteKey]) -> Continued:
    """Return what a file proves; raises EvidenceFault."""
    line = decode(raw, ConsistencyProof)
    older = open_checkpoint(line.older, keys, "the older checkpoint")
    newer = open_checkpoint(line.checkpoint, keys, "the checkpoint")
    return _continued(line, older, newer, keys)


def _continued(
    line: ConsistencyProof, older: Checkpoint, newer: Checkpoint, keys: Sequence[NoteKey]
) -> Continued:
    if {older.ledger, newer.ledger} != {line.ledger}:
        raise EvidenceFault(None, "the checkpoints are not both of that ledger")
    if (line.lineages is None) != (older.origin == newer.origin):
        raise EvidenceFault(None, "lineages link the checkpoints where these are of two origins")
    lineages = _lineages(line.lineages or [], newer, keys)
    if line.lineages is not None and newer.origin not in {one.origin for one in lineages[-1:]}:
        raise EvidenceFault(None, f"{newer.origin} is not the present lineage of this log")
    check_linked(lineages, newer, older)
    proof = to_hashes(line.proof)
    if not is_consistent(older.size, older.root, newer.size, newer.root, proof):
        message = f"the log does not begin with the older checkpoint's {older.size} events"
        raise EvidenceFault(None, message)
    return Continued(line, older, newer, lineages)


def _lineages(
    events: Sequence[EventLine], checkpoint: Checkpoint, keys: Sequence[NoteKey]
) -> list[Lineage]:
    """Return the lineages that events begin, all of their stream from its first one on."""
    stream, last, found = str(lineage_stream(checkpoint.ledger)), 0, list[Lineage]()
    for version, event in enumerate(events, 1):
        check_event(event, last, checkpoint)
        if (event.originator_id, event.originator_version) != (stream, version):
            raise EvidenceFault(event.position, "an event of the stream of lineages is missing")
        if event.topic == LineageBegun.__name__:
            found.append(lineage_begun(event, keys, checkpoint.ledger, found))
        last = event.position
    return found
