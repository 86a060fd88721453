"""What happened to a thing, or by a request, over several ledgers (decision 8)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from projections.activity.reader import ActivityReader, TimelineEntry, merged
from service.ledger.ledger import Ledger

SECRET: Final = ("secret_hash", "token_hash")
"""Fields of events that nobody is shown: hashes of credentials."""

NUMBERED: Final = 2**63 - 1
"""Before it come all events that have a position, and none that waits for one."""


class History(NamedTuple):
    """The newest events, oldest first; `is_cut` where there are more."""

    entries: Sequence[TimelineEntry]
    is_cut: bool


async def history(
    ledgers: Sequence[Ledger],
    subject: str,
    limit: int,
    before: Mapping[str, int] | None = None,
) -> History:
    """Return at most `limit` events that name an id of ours, or that a request caused.

    `before` begins an older page: by ledger, the position that its events come before.
    """
    start = before or {}
    timelines = [
        await ActivityReader(one).timeline(subject, limit + 1, start.get(one.name))
        for one in ledgers
    ]
    entries = merged(timelines)
    return History(entries[-limit:], len(entries) > limit)


def older_than(
    entries: Sequence[TimelineEntry], before: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """Return where the page begins that is older than one; `before` is where that one began.

    Each ledger's entries are the newest of its own, so nothing is left out or told twice. Only
    events that still wait for a number behind a whole page of such are left for later.
    """
    start = dict(before or {})
    for entry in reversed(entries):
        start[entry.ledger] = NUMBERED if entry.position is None else entry.position
    return start
