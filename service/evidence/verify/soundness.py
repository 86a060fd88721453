"""Whether a log is what a checkpoint signed, before something else is signed that rests on it."""

from service.core.progress import Advance
from service.evidence.checkpoint import Checkpoint
from service.evidence.export.format import EvidenceFault
from service.evidence.verify.definitions import definitions_fault, session_fault
from service.evidence.verify.part import PartCheck, Passed, Task
from service.evidence.verify.segments import Segments
from service.ledger.database import Connection, Database
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries

_SQL = queries("service.evidence.verify")


async def refuse_unsound(
    connection: Connection, database: Database, checkpoint: Checkpoint, advance: Advance
) -> None:
    """Read every event under a checkpoint in the caller's snapshot; `advance` gets their number.

    Raises EvidenceFault where they are not what was signed, or the schema is not what migrations
    make: then the next statement may see other rows.
    """
    schema = database.schema
    fault = await definitions_fault(database) or await session_fault(connection, schema)
    if fault is not None:
        raise EvidenceFault(None, fault.sentence)
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
            "`audit verify` tells more",
        )
