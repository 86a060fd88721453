"""The proof that a claim did not exist at a checkpoint, by the streams around its place."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.format import (
    EvidenceFault,
    HashText,
    Line,
    Position,
    Size,
    StreamText,
    decode,
    open_checkpoint,
    to_hashes,
)
from service.evidence.note import NoteInvalid, NoteKey
from service.evidence.streams_note import StreamsNote, stream_leaf
from service.facts.claims import claim_stream
from service.ledger.merkle import EMPTY_ROOT, root_by_inclusion

FORMAT: Final = "claim-ledger absence v1"


class StreamLine(Line, frozen=True):
    """A stream of the index: its id, its first event's position, and the proof of inclusion."""

    stream: StreamText
    position: Position
    proof: list[HashText]


class AbsenceProof(Line, frozen=True, kw_only=True):
    """The whole file; `index` is the number of streams in the index before that of the claim."""

    format: Literal["claim-ledger absence v1"]
    ledger: Annotated[str, msgspec.Meta(pattern=r"\A(live|test)\Z")]
    epoch: Size
    partner_id: str
    entity_id: str
    partner_claim_id: str
    index: Size
    before: StreamLine | None = None
    after: StreamLine | None = None
    streams: str
    checkpoint: str


class Absent(NamedTuple):
    """The result: the log that the checkpoint signs had no such claim."""

    proof: AbsenceProof
    stream: UUID
    streams: int
    checkpoint: Checkpoint


def check_absence(raw: bytes, keys: Sequence[NoteKey]) -> Absent:
    """Return what a file proves; raises EvidenceFault, which names no position."""
    line = decode(raw, AbsenceProof)
    checkpoint = open_checkpoint(line.checkpoint, keys, "the checkpoint")
    try:
        index = StreamsNote.open(line.streams, keys)
    except NoteInvalid as error:
        raise EvidenceFault(None, f"the note of streams: {error}") from None
    if checkpoint.ledger != line.ledger or index.checkpoint != checkpoint:
        raise EvidenceFault(None, "the notes are not of one checkpoint of that ledger")
    if line.epoch and line.ledger != "test":
        raise EvidenceFault(None, "only a sandbox begins anew")
    names = (line.partner_id, line.entity_id, line.partner_claim_id)
    stream = claim_stream(line.ledger, line.epoch, *names)
    _check_neighbours(line, stream, index)
    return Absent(line, stream, index.streams, checkpoint)


def _check_neighbours(line: AbsenceProof, stream: UUID, index: StreamsNote) -> None:
    before, after, at, count = line.before, line.after, line.index, index.streams
    is_between = (before is not None) == (at > 0) and (after is not None) == (at < count)
    if at > count or not is_between or (not count and index.root != EMPTY_ROOT):
        raise EvidenceFault(None, "these are not the neighbours of the claim's place")
    for one, number in ((before, at - 1), (after, at)):
        if one is not None:
            _check_leaf(one, number, index)
    if before is not None and UUID(before.stream).bytes >= stream.bytes:
        raise EvidenceFault(None, "the stream before is not before that of the claim")
    if after is not None and UUID(after.stream).bytes <= stream.bytes:
        raise EvidenceFault(None, "the stream after is not after that of the claim")


def _check_leaf(one: StreamLine, number: int, index: StreamsNote) -> None:
    leaf = stream_leaf(UUID(one.stream).bytes, one.position)
    try:
        root = root_by_inclusion(leaf, number, index.streams, to_hashes(one.proof))
    except ValueError as error:
        raise EvidenceFault(None, f"a stream's proof cannot hold: {error}") from None
    if root != index.root or one.position > index.checkpoint.size:
        raise EvidenceFault(None, "a stream's proof does not lead to the root of the index")
