"""Whether others sign a ledger's checkpoints, for alerts, whichever process asks them."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from service.evidence.checkpoints.lineage import begun_lineages
from service.evidence.policy import Policy
from service.evidence.time_stamp import TimeAuthority
from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

_SQL = queries("service.evidence.countersigning")

Keys = frozenset[tuple[str, bytes]]
"""Names and ids."""


class CountersigningState(NamedTuple):
    """Since when checkpoints lack the signatures of others; None: none does, or none is requested.

    `refusals` is the number of witnesses that find the log inconsistent with what they signed.
    """

    unwitnessed_since: datetime | None
    unstamped_since: datetime | None
    refusals: int


async def countersigning_state(
    ledger: Ledger, policy: Policy | None, authority: TimeAuthority | None
) -> CountersigningState:
    """Return how it is; signatures were verified before they were kept, and are not again."""
    begun = await begun_lineages(ledger) if policy or authority else []
    reads = ledger.database.reads
    rows = await reads.fetch(_SQL.countersigned, begun[-1].origin) if begun else []
    unwitnessed = policy and _since(rows, policy.is_met)
    unstamped = authority and _since(rows, lambda keys: authority.which in keys)
    witnesses = [one.key.which for one in policy.witnesses.values()] if policy else []
    names, ids = [name for name, _ in witnesses], [key_id for _, key_id in witnesses]
    refusals = await reads.fetch(_SQL.refusals, names, ids)
    return CountersigningState(unwitnessed, unstamped, len(refusals))


def _since(rows: Sequence[Row], will_do: Callable[[Keys], bool]) -> datetime | None:
    """Return the date of the oldest checkpoint after the newest that will do; None: there is none.

    `rows` are by size, the largest first.
    """
    since: datetime | None = None
    for row in rows:
        if will_do(frozenset(zip(row["names"], row["key_ids"], strict=True))):
            break
        since = row["made_at"]
    return since
