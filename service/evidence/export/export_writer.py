"""Writing an export for offline verification: the log, or what of it concerns an entity."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from typing import BinaryIO, Final, NamedTuple

import msgspec

from service.core.errors import invalid
from service.core.progress import Advance
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import begun_lineages
from service.evidence.export.concerning import concerning
from service.evidence.export.format import (
    CheckpointLine,
    Consistency,
    EventLine,
    EvidenceFault,
    Header,
    encode,
    event_line,
    to_text,
    to_texts,
)
from service.evidence.tree.signed_tree import SignedTree
from service.ledger.database import Database, Row
from service.ledger.decoding import PAGE_BYTES_MAX, is_full
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange, is_consistent
from service.ledger.sql import queries

BATCH_EVENTS: Final = 2000

_SQL = queries("service.evidence.export")


class Signed(NamedTuple):
    """A checkpoint and its signed note."""

    checkpoint: Checkpoint
    note: str


class ExportScope(NamedTuple):
    """What to export: the events from a position on, perhaps only those of an entity.

    If an `older` checkpoint is given, the export proves that the log continues it. `search` finds
    an entity's events in the whole log, without an index.
    """

    first: int = 1
    entity_id: str | None = None
    older: Checkpoint | None = None
    search: bool = False


async def write_export(
    ledger: Ledger, signed: Signed, scope: ExportScope, out: BinaryIO, advance: Advance
) -> int:
    """Write an export up to the checkpoint; return how many events it has.

    `advance` gets the number of positions passed. Raises EvidenceFault, and the file is then
    worthless, for an event that cannot be exported and a log that does not make the checkpoint's
    root.
    """
    checkpoint, entity_id = signed.checkpoint, scope.entity_id
    size, before = checkpoint.size, scope.first - 1
    if before > size:
        raise EvidenceFault(None, f"position {scope.first} is beyond the checkpoint's {size}")
    older = await _older(ledger, checkpoint, scope)
    positions: Sequence[int] = range(scope.first, size + 1)
    if entity_id is not None:
        positions = await concerning(ledger, entity_id, size, scope.first, search=scope.search)
    signed_tree = SignedTree.of(ledger.database, checkpoint)
    tree = CompactRange()
    if entity_id is None and before:
        tree = CompactRange(before, await signed_tree.edge_at(before))
        advance(before)
    header = Header(
        format="claim-ledger export v1",
        ledger=ledger.name,
        first=scope.first,
        size=size,
        root=to_text(checkpoint.root),
        entity=entity_id,
        tree=to_texts(tree.hashes) if tree.size else None,
        consistency=await _consistency(signed_tree, older, checkpoint) if older else None,
    )
    out.write(encode(header))
    passed = before
    async for lines, leaves in event_lines(ledger.database, positions):
        if entity_id is None:
            out.write(encode(*lines))
            tree.extend(leaves)
        else:
            out.write(encode(*await with_proofs(lines, signed_tree)))
        advance(lines[-1].position - passed)
        passed = lines[-1].position
    advance(size - passed)
    if entity_id is None and tree.root() != checkpoint.root:
        message = "the log does not make the checkpoint's root; run `audit verify`"
        raise EvidenceFault(1, message)
    out.write(encode(CheckpointLine(checkpoint=signed.note)))
    return len(positions)


async def event_lines(
    database: Database, positions: Sequence[int]
) -> AsyncGenerator[tuple[list[EventLine], list[bytes]]]:
    """Yield the lines of the events at these positions, and their leaves; raises EvidenceFault.

    A page at a time; PostgreSQL reads the next one meanwhile.
    """
    begun: list[asyncio.Task[_Page]] = []
    try:
        done = 0
        while done < len(positions):
            chosen, rows = await (begun.pop() if begun else _page(database, positions, done))
            done += len(chosen)
            if done < len(positions):
                begun.append(asyncio.create_task(_page(database, positions, done)))
                await asyncio.sleep(0)  # until it is under way
            found = {row["position"]: row for row in rows}
            lines = [event_line(found.get(position), position) for position in chosen]
            yield lines, [row["leaf_hash"] for row in rows]
    finally:
        for page in begun:
            page.cancel()


class _Page(NamedTuple):
    chosen: Sequence[int]
    rows: Sequence[Row]


async def _page(database: Database, positions: Sequence[int], done: int) -> _Page:
    chosen = list(positions[done : done + BATCH_EVENTS])
    rows = await database.background.fetch(_SQL.chosen, chosen, PAGE_BYTES_MAX)
    if is_full(rows):
        del chosen[bisect_right(chosen, rows[-1]["position"]) :]
    return _Page(chosen, rows)


async def with_proofs(lines: Sequence[EventLine], tree: SignedTree) -> list[EventLine]:
    """Return events' lines with their proofs of inclusion; raises TreeAltered."""
    proofs = await tree.inclusion_proofs([line.position for line in lines])
    return [
        msgspec.structs.replace(line, proof=to_texts(proof))
        for line, proof in zip(lines, proofs, strict=True)
    ]


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


async def _consistency(tree: SignedTree, older: Checkpoint, checkpoint: Checkpoint) -> Consistency:
    proof = await tree.consistency_proof(older.size)
    if not is_consistent(older.size, older.root, checkpoint.size, checkpoint.root, proof):
        raise EvidenceFault(1, f"the log does not go on from the older checkpoint's {older.size}")
    return Consistency(size=older.size, root=to_text(older.root), proof=to_texts(proof))
