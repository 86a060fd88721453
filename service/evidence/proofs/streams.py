"""The index of streams of a checkpoint, made from the events in bounded memory; published once."""

from typing import Final, NamedTuple
from uuid import UUID

from service.core.progress import Advance
from service.evidence.checkpoints.finding import refuse_found
from service.evidence.checkpoints.names import streams_name
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import EvidenceFault, to_texts
from service.evidence.note import NoteInvalid
from service.evidence.proofs.absence import FORMAT, AbsenceProof, StreamLine
from service.evidence.rolled_back import snapshot_of
from service.evidence.streams_note import StreamsNote
from service.evidence.tree.streamed import StreamedTree
from service.evidence.verify.soundness import as_migrated, refuse_unsound
from service.facts.claims import claim_stream
from service.ledger.database import Connection, Database, Row
from service.ledger.sql import queries

PAGE_STREAMS: Final = 5_000
"""Fetched at once."""
SECONDS_MAX: Final = 3600.0

_SQL = queries("service.evidence.proofs")
_READ_WHOLE = queries("service.evidence.verify").read_whole


class ClaimName(NamedTuple):
    """The parts from which a claim's stream is derived; `epoch` is the sandbox's, 0 in `live`."""

    ledger: str
    epoch: int
    partner_id: str
    entity_id: str
    partner_claim_id: str

    @property
    def stream(self) -> UUID:
        """The stream's id."""
        return claim_stream(*self)


async def begins_at(database: Database, stream: UUID, size: int) -> int | None:
    """Return the position of a stream's first event, None if it had not begun by `size`."""
    row = await database.background.fetchrow(_SQL.stream_at, stream, size)
    return None if row is None else row["position"]


async def prove_absence(
    checkpoints: Checkpoints, name: ClaimName, signed: Signed, advance: Advance
) -> AbsenceProof:
    """Return the proof that a claim was not there; it was looked for in vain.

    Makes, signs and publishes the index of that checkpoint, once every event under it has been
    found to be what was signed: an index without one of them would prove what is not so. `advance`
    gets the number of events read for that, and then of streams passed. Raises EvidenceFault if the
    log or the published index is another one; KeyMissing, LedgerForked and ArchiveUnavailable as
    signing a checkpoint does.
    """
    database, size = checkpoints.ledger.database, signed.checkpoint.size
    key = checkpoints.signing_key()
    await refuse_found(checkpoints.ledger)
    async with (
        as_migrated(database),
        snapshot_of(database, SECONDS_MAX) as connection,
    ):
        await refuse_unsound(connection, database.schema, signed.checkpoint, advance)
        tree, index = await _index(connection, database.schema, size, name.stream, advance)
        sides = [
            await connection.fetchrow(query.on(database.schema), name.stream, size)
            for query in (_SQL.stream_before, _SQL.stream_after)
        ]
    made = StreamsNote(signed.checkpoint, tree.size, tree.root())
    note = await _published(checkpoints, made, made.sign(key))
    wanted = [number for number in (index - 1, index) if 0 <= number < tree.size]
    proofs = dict(zip(wanted, await tree.inclusion_proofs(wanted), strict=True))
    before, after = sides
    return AbsenceProof(
        format=FORMAT,
        **name._asdict(),
        index=index,
        before=_line(before, proofs.get(index - 1)),
        after=_line(after, proofs.get(index)),
        streams=note,
        checkpoint=signed.note,
    )


async def _index(
    connection: Connection, schema: str, size: int, stream: UUID, advance: Advance
) -> tuple[StreamedTree, int]:
    """Return the tree of the streams that had begun by `size`, and the place of one in it."""
    tree, index, is_passed = StreamedTree(), 0, False
    await connection.fetchrow(_READ_WHOLE.on(schema))
    cursor = await connection.cursor(_SQL.stream_leaves.on(schema), size, stream)
    while rows := await cursor.fetch(PAGE_STREAMS):
        before = sum(row["is_before"] for row in rows)
        index += before
        if not is_passed and before < len(rows):
            is_passed = True
            for number in {max(index - 1, 0), index}:
                tree.want(number)
        tree.extend(b"".join(row["leaf"] for row in rows))
        advance(len(rows))
    if not is_passed:
        tree.want(max(index - 1, 0))
    return tree, index


def _line(row: Row | None, proof: list[bytes] | None) -> StreamLine | None:
    if row is None or proof is None:
        return None
    stream, position = row
    return StreamLine(stream=str(stream), position=position, proof=to_texts(proof))


async def _published(checkpoints: Checkpoints, made: StreamsNote, note: str) -> str:
    """Publish an index, and return its note: that which was published before, if it is the same."""
    name = streams_name(made.checkpoint.origin, made.checkpoint.size)
    there = await checkpoints.published.put_beside(name, note.encode())
    if there is None:
        return note
    try:
        found = StreamsNote.open(there.decode(), checkpoints.keys)
    except (NoteInvalid, UnicodeDecodeError) as error:
        raise EvidenceFault(None, f"{name}: the published index is not sound: {error}") from error
    if found != made:
        raise EvidenceFault(
            None,
            f"{name}: another index was published, of {found.streams} streams; this log has "
            f"{made.streams}",
        )
    return there.decode()
