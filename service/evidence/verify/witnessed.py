"""Whether a log that holds has the required signatures of others."""

import msgspec

from service.evidence.countersigning.search import newest_countersigned
from service.evidence.demands import NO_DEMANDS
from service.evidence.lineages import lineages_of
from service.evidence.note import NoteInvalid
from service.evidence.verdict import Fault, Verdict
from service.evidence.verify.expectations import Evidence
from service.ledger.database import Connection


async def witnessed(
    connection: Connection, schema: str, evidence: Evidence, verdict: Verdict
) -> Verdict:
    """Return the verdict with the newest checkpoint that has what is demanded, or with a fault.

    The checkpoints were compared with the log before, in the same snapshot.
    """
    if evidence.demands == NO_DEMANDS or not verdict.size:
        return verdict
    lineages = await lineages_of(connection, schema, evidence.keys)
    try:
        _, found = await newest_countersigned(
            connection,
            schema,
            evidence.demands,
            lambda origin, size: size <= (lineages.reach(origin) or 0),
        )
    except NoteInvalid as error:
        return verdict.with_fault(Fault(None, f"No checkpoint will do: {error}."))
    return msgspec.structs.replace(verdict, countersigned=found)
