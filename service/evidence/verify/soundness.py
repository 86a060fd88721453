"""Whether a log is what a checkpoint signed, before something else is signed that rests on it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from service.core.progress import Advance
from service.evidence.checkpoint import Checkpoint
from service.evidence.export.format import EvidenceFault
from service.evidence.verdict import Fault
from service.evidence.verify.definitions import definitions_fault, session_fault
from service.evidence.verify.part import PartCheck, Passed, Task
from service.evidence.verify.segments import Segments
from service.ledger.database import Connection, Database
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries

_SQL = queries("service.evidence.verify")


@asynccontextmanager
async def as_migrated(database: Database) -> AsyncGenerator[None]:
    """Compare the schema before the caller opens a snapshot, and after it is closed.

    Raises EvidenceFault where it is not what migrations make: then the next statement may see other
    rows. Within the snapshot it would take a second connection, for which a pooler may have no
    place.
    """
    _refuse(await definitions_fault(database))
    yield
    _refuse(await definitions_fault(database))


async def refuse_unsound(
    connection: Connection, schema: str, checkpoint: Checkpoint, advance: Advance
) -> None:
    """Read every event under a checkpoint in the caller's snapshot; `advance` gets their number.

    The snapshot is within `as_migrated`. Raises EvidenceFault where they are not what was signed.
    """
    _refuse(await session_fault(connection, schema))
    tree = CompactRange()

    def take(message: Passed | Segments) -> None:
        if isinstance(message, Passed):
            advance(message.rows)
            for level, node in message.subtrees:
                tree.append_subtree(level, node)

    await connection.fetchrow(_SQL.plan.on(schema), "off")
    part = PartCheck(Task(schema, 0, checkpoint.size, (), None, None), take)
    outcome = await part.check(connection)
    if outcome is None or (tree.size, tree.root()) != (checkpoint.size, checkpoint.root):
        raise EvidenceFault(
            None,
            f"the first {checkpoint.size} events of {schema} are not what was signed: "
            "`audit verify` shows more",
        )


def _refuse(fault: Fault | None) -> None:
    if fault is not None:
        raise EvidenceFault(None, fault.sentence)
