"""The history of an id, or of a request, over several ledgers (decision 7)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from projections.activity.reader import ActivityReader, TimelineEntry, merged
from service.ledger.ledger import Ledger

SECRET: Final = ("secret_hash", "token_hash")
"""Fields of events that are never shown: hashes of credentials."""

NUMBERED: Final = 2**63 - 1
"""A page before it has the events with a position, and none that waits for one."""


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
    """Return at most `limit` events that name an id, or that a request caused.

    `before` selects an older page: for each ledger, the position that its events precede.
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
    """Return the `before` of the next older page; `before` is that of the page of `entries`.

    Each ledger's entries are its newest, so no event is left out or repeated. Only events that
    still wait for a number beyond a whole page of such are skipped for now.
    """
    start = dict(before or {})
    for entry in reversed(entries):
        start[entry.ledger] = NUMBERED if entry.position is None else entry.position
    return start
