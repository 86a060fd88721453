"""The published indexes of streams, compared with the log's own events."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

from service.archive.port import ObjectTooLarge
from service.core.counted import counted
from service.evidence.checkpoint import NOTE_BYTES_MAX, Checkpoint
from service.evidence.checkpoints.names import streams_name
from service.evidence.lineages import Lineages
from service.evidence.note import NoteInvalid
from service.evidence.streams_note import StreamsNote, stream_leaf
from service.evidence.verdict import Fault
from service.evidence.verify.expectations import Evidence
from service.ledger.database import Connection
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries

_PREFETCH: Final = 5_000
_SQL = queries("service.evidence.verify")


async def streams_fault(
    connection: Connection, schema: str, evidence: Evidence, lineages: Lineages
) -> Fault | None:
    """Return the first published index of a lineage of this log that is not that of its events.

    The log was verified before, in the same snapshot. All indexes are made in one pass over the
    streams, sorted. Those of lost events are left. Raises ArchiveUnavailable.
    """
    begun = {one.origin for one in lineages.begun}
    stated = list[StreamsNote]()
    for origin, size in sorted(evidence.streams, key=lambda one: one[1]):
        if origin in begun and not lineages.sets_aside(origin, size):
            found = await _stated(connection, schema, evidence, origin, size)
            if isinstance(found, Fault):
                return found
            stated.append(found)
    return await _differing(connection, schema, stated) if stated else None


async def _stated(
    connection: Connection, schema: str, evidence: Evidence, origin: str, size: int
) -> StreamsNote | Fault:
    content = None
    with suppress(ObjectTooLarge):
        content = await evidence.read(streams_name(origin, size), NOTE_BYTES_MAX)
    try:
        found = StreamsNote.open((content or b"").decode(), evidence.keys)
    except (NoteInvalid, UnicodeDecodeError) as error:
        return Fault(None, f"{_what(size)} is not sound: {error}.")
    note = await connection.fetchval(_SQL.note.on(schema), origin, size)
    notes = [
        one.text for one in evidence.published or () if (one.origin, one.size) == (origin, size)
    ]
    for text in (note, *notes):
        with suppress(NoteInvalid):
            if found.checkpoint == Checkpoint.open(text or "", evidence.keys):
                return found
    return Fault(None, f"{_what(size)} is of a checkpoint that is neither stored nor published.")


async def _differing(
    connection: Connection, schema: str, stated: Sequence[StreamsNote]
) -> Fault | None:
    await connection.fetchrow(_SQL.read_whole.on(schema))
    trees = [CompactRange() for _ in stated]
    largest = max(one.checkpoint.size for one in stated)
    cursor = await connection.cursor(_SQL.first_events.on(schema), largest)
    while rows := await cursor.fetch(_PREFETCH):
        leaves = [(position, _leaf(stream, position)) for stream, position in rows]
        for one, tree in zip(stated, trees, strict=True):
            tree.extend(leaf for position, leaf in leaves if position <= one.checkpoint.size)
    for one, tree in zip(stated, trees, strict=True):
        if (tree.size, tree.root()) != (one.streams, one.root):
            return Fault(
                None,
                f"{_what(one.checkpoint.size)} is not that of its events: they have {tree.size} "
                f"streams, the index says {one.streams}.",
            )
    return None


def _leaf(stream: UUID, position: int) -> bytes:
    return stream_leaf(stream.bytes, position)


def _what(size: int) -> str:
    return f"The index of streams published with the checkpoint of {counted(size, 'event')}"
