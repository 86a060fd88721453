"""What waits for the team: each a sentence, with a link to what to do about it.

Read for the page, few rows at a time: what there is more of is counted up to a bound.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from service.ledger.database import Row
from service.ledger.sql import queries
from service.pages.backoffice.frame import BackofficeContext

PAUSED_MAX: Final = 20
COUNTED_MAX: Final = 1_000
"""Of parked events and of those set aside, of each ledger."""
HAND_OVERS: Final = "processing"
"""The subscriber whose parked streams are hand-overs of messages."""

_SQL = queries("service.pages.backoffice")


class Stuck(NamedTuple):
    """What stands still in a ledger, and since when.

    `kind` is `parked` with the `name` of who parked it, `hand_over`, or `set_aside`.
    """

    kind: str
    ledger: str
    name: str
    number: int
    since: datetime


class WorkQueue(NamedTuple):
    """What waits: partners to review, documents that checks flagged, endpoints, what is stuck."""

    pending: int
    flagged: Sequence[Row]
    paused: Sequence[Row]
    stuck: Sequence[Stuck]
    names: Mapping[str, Row]

    def __bool__(self) -> bool:
        """Return whether anything waits."""
        return bool(self.pending or self.flagged or self.paused or self.stuck)


async def work_queue(context: BackofficeContext) -> WorkQueue:
    """Return what waits for the team."""
    live = context.modes["live"]
    paused = await context.accounts.reads.fetch(_SQL.paused_endpoints, PAUSED_MAX)
    databases = {"accounts": context.accounts} | {
        mode: one.database for mode, one in context.modes.items()
    }
    stuck = [
        _stuck(ledger, row)
        for ledger, database in databases.items()
        for row in await database.reads.fetch(_SQL.stuck, COUNTED_MAX)
    ]
    return WorkQueue(
        pending=(await context.counts()).get("pending", 0),
        flagged=await live.documents.flagged(),
        paused=paused,
        stuck=stuck,
        names=await context.names({row["partner_id"] for row in paused}),
    )


def _stuck(ledger: str, row: Row) -> Stuck:
    name: str = row["read_model"] or ""
    kind = "set_aside" if not name else "hand_over" if name == HAND_OVERS else "parked"
    return Stuck(kind, ledger, name, row["streams"], row["since"])
