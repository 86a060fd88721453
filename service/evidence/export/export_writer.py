"""Writing an export for offline verification: the log, or what of it concerns an entity."""

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from typing import BinaryIO, Final, NamedTuple

import msgspec

from service.core.errors import Refusal, invalid
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import begun_lineages
from service.evidence.export.format import (
    CheckpointLine,
    Consistency,
    EventLine,
    EvidenceFault,
    Header,
    encode,
    event_line,
    to_hash,
    to_text,
    to_texts,
)
from service.evidence.export.proofs import ProofCutter
from service.facts.lineages import lineage_stream
from service.ledger.database import Database, Row
from service.ledger.decoding import PAGE_BYTES_MAX, is_full
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange, is_consistent
from service.ledger.sql import queries

BATCH_EVENTS: Final = 2000
BATCH_HASHES: Final = 20_000
SEARCH_SECONDS_MAX: Final = 3600.0
"""For the search for what concerns an entity, which reads the whole log once or twice."""

_SQL = queries("service.evidence.export")
_LEAF_HASHES = queries("service.ledger").leaf_hashes

Advance = Callable[[int], object]


class Signed(NamedTuple):
    """A checkpoint and its signed note."""

    checkpoint: Checkpoint
    note: str


class ExportScope(NamedTuple):
    """What to export: the events from a position on, perhaps only those of an entity.

    If an `older` checkpoint is given, the export proves that the log continues it.
    """

    first: int = 1
    entity_id: str | None = None
    older: Checkpoint | None = None


async def write_export(
    ledger: Ledger, signed: Signed, scope: ExportScope, out: BinaryIO, advance: Advance
) -> int:
    """Write an export up to the checkpoint; return how many events it has.

    `advance` gets the number of positions passed. Raises EvidenceFault, and the file is then
    worthless, for an event that cannot be exported and a log that does not make the checkpoint's
    root.
    """
    checkpoint, is_whole = signed.checkpoint, scope.entity_id is None
    size, before = checkpoint.size, scope.first - 1
    if before > size:
        raise EvidenceFault(None, f"position {scope.first} is beyond the checkpoint's {size}")
    older = await _older(ledger, checkpoint, scope)
    positions = range(scope.first, size + 1) if is_whole else await _concerning(ledger, size, scope)
    indexes = () if is_whole else [position - 1 for position in positions]
    cutter = ProofCutter(size, indexes, older.size if older else 0)
    if older is not None or not is_whole:
        hashed: Advance = (lambda _hashes: None) if is_whole else advance
        await cut_proofs(ledger.database, checkpoint, cutter, hashed)
    tree = CompactRange()
    if is_whole:
        async for leaves in _leaf_hashes(ledger.database, before):
            tree.extend(leaves)
            advance(len(leaves))
    header = Header(
        format="claim-ledger export v1",
        ledger=ledger.name,
        first=scope.first,
        size=size,
        root=to_text(checkpoint.root),
        entity=scope.entity_id,
        tree=to_texts(tree.hashes) if is_whole and before else None,
        consistency=None if older is None else _consistency(cutter, older, checkpoint),
    )
    out.write(encode(header))
    async for lines in _event_lines(ledger.database, positions, None if is_whole else cutter):
        out.writelines(map(encode, lines))
        if is_whole:
            tree.extend(to_hash(line.leaf_hash) for line in lines)
            advance(len(lines))
    if is_whole:
        _compare(tree, checkpoint)
    out.write(encode(CheckpointLine(checkpoint=signed.note)))
    return len(positions)


async def _event_lines(
    database: Database, positions: Sequence[int], cutter: ProofCutter | None
) -> AsyncIterator[Sequence[EventLine]]:
    """Yield the lines of the events at these positions, a page at a time; raises EvidenceFault.

    Each line has its proof of inclusion if a cutter is given.
    """
    done = 0
    while done < len(positions):
        chosen = list(positions[done : done + BATCH_EVENTS])
        rows = await database.background.fetch(_SQL.chosen, chosen, PAGE_BYTES_MAX)
        if is_full(rows):
            del chosen[bisect_right(chosen, rows[-1]["position"]) :]
        found = {row["position"]: row for row in rows}
        lines = [event_line(found.get(position), position) for position in chosen]
        yield [with_proof(line, cutter) for line in lines] if cutter else lines
        done += len(chosen)


def with_proof(line: EventLine, cutter: ProofCutter) -> EventLine:
    """Return an event's line with its proof of inclusion."""
    proof = to_texts(cutter.inclusion_proof(line.position - 1))
    return msgspec.structs.replace(line, proof=proof)


async def cut_proofs(
    database: Database, checkpoint: Checkpoint, cutter: ProofCutter, advance: Advance
) -> None:
    """Grow a tree by the stored leaf hashes; raises EvidenceFault if it is not the checkpoint's."""
    async for leaves in _leaf_hashes(database, checkpoint.size):
        cutter.extend(leaves)
        advance(len(leaves))
    _compare(cutter, checkpoint)


async def _older(ledger: Ledger, checkpoint: Checkpoint, scope: ExportScope) -> Checkpoint | None:
    """Return the older checkpoint that the export is to continue, None for none and an empty one.

    Raises Refusal unless the export has the lineages that link it: all verifiers would refuse it.
    """
    older, first = scope.older, scope.first
    if older is None:
        return None
    if older.size > checkpoint.size:
        message = f"the older checkpoint counts more events than {checkpoint.size}"
        raise EvidenceFault(checkpoint.size + 1, message)
    origin, needed = checkpoint.origin, first
    begun = {one.origin: one for one in await begun_lineages(ledger)}
    while origin != older.origin:
        lineage = begun.pop(origin, None)
        if lineage is None or lineage.follows is None:
            raise invalid("checkpoint", f"this log is not linked to {older.origin}")
        origin, needed = lineage.follows, min(needed, lineage.position)
    if needed < first:
        raise invalid(
            "from",
            f"the older checkpoint is of an earlier lineage: export from position {needed} or "
            "before, so that the events are there that link it",
        )
    return older if older.size else None  # every log continues an empty one


async def _concerning(ledger: Ledger, size: int, scope: ExportScope) -> list[int]:
    """Return the positions of what concerns an entity; raises Refusal (`entity_not_found`).

    There may be none from a position on.
    """
    rows = await _entity_rows(ledger, size, scope.entity_id, scope.first)
    if not any(row["concerns"] for row in rows):
        before = await _entity_rows(ledger, size, scope.entity_id, 1) if scope.first > 1 else []
        if not any(row["concerns"] for row in before):
            raise Refusal("entity_not_found")
    return [row["position"] for row in rows]


async def _entity_rows(ledger: Ledger, size: int, entity_id: str | None, first: int) -> list[Row]:
    lineages = lineage_stream(ledger.name)
    async with ledger.database.background.transaction(SEARCH_SECONDS_MAX) as connection:
        return await connection.fetch(_SQL.entity.on(ledger.name), size, entity_id, lineages, first)


def _consistency(cutter: ProofCutter, older: Checkpoint, checkpoint: Checkpoint) -> Consistency:
    proof = cutter.consistency_proof()
    if not is_consistent(older.size, older.root, checkpoint.size, checkpoint.root, proof):
        raise EvidenceFault(1, f"the log does not go on from the older checkpoint's {older.size}")
    return Consistency(size=older.size, root=to_text(older.root), proof=to_texts(proof))


async def _leaf_hashes(database: Database, size: int) -> AsyncIterator[list[bytes]]:
    """Yield the first `size` stored leaf hashes in batches; raises EvidenceFault for a gap."""
    for start in range(0, size, BATCH_HASHES):
        end = min(start + BATCH_HASHES, size)
        rows = await database.background.fetch(_LEAF_HASHES, start, end)
        if len(rows) != end - start:
            raise EvidenceFault(start + 1, f"positions are missing among {start + 1} to {end}")
        yield [row["leaf_hash"] for row in rows]


def _compare(tree: CompactRange, checkpoint: Checkpoint) -> None:
    if tree.root() != checkpoint.root:
        raise EvidenceFault(1, "the log does not make the checkpoint's root; run `audit verify`")
